"""Options that are records: a list of them, or the path of a jsonl file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DefinitionError, InputError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.records import Record

# `given_records` checks that they are records, and names the first that is none.
Given: TypeAlias = Annotated[str | os.PathLike[str], FileContent] | Sequence[Any]


def given_records(option: str, source: Given, needed: Iterable[FieldKey] = ()) -> Iterator[Record]:
    """Yield the records of an option, which has the records or the path of a jsonl file.

    Each of the columns ``needed`` must be in some of the records.
    """
    absent, record = list(needed), {}
    for record in _records(option, source):
        if absent:
            absent = [column for column in absent if not column.present(record)]
        yield record
    if record and absent:
        near = nearest(absent[0].name, record)
        hint = f"; did you mean {near!r}?" if near else ""
        msg = (
            f"no record of {option} has the column {absent[0].name!r}; the last one has "
            f"{', '.join(record)}{hint}"
        )
        raise DefinitionError(msg)


def _records(option: str, source: Given) -> Iterator[Record]:
    if isinstance(source, (str, os.PathLike)):
        try:
            yield from JsonlDataset.of_file(source)
        except InputError as error:
            msg = f"{option} is {str(source)!r}, which cannot be read: {error}"
            raise DefinitionError(msg) from None
        return
    records: Iterable[object] = source
    for position, record in enumerate(records):
        if not isinstance(record, dict):
            kind = type(record).__name__
            msg = f"{option} is a list whose element {position} is a {kind}; give dicts or a path"
            raise DefinitionError(msg)
        yield record
