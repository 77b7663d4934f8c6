"""Options that are records: a list of them, or the path of a jsonl file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DefinitionError, InputError
from dagster_dataops.records import Record

# `given_records` checks that they are records, and names the first that is none.
Given: TypeAlias = str | os.PathLike[str] | Sequence[Any]


def given_records(option: str, given: Given) -> Iterator[Record]:
    """Yield the records of an option.

    Args:
        option: The name of the option, for errors.
        given: Records, or the path of a jsonl file.

    Raises:
        DefinitionError: It is none of these, or the file cannot be read.
    """
    if isinstance(given, (str, os.PathLike)):
        try:
            yield from JsonlDataset.of_file(given)
        except InputError as error:
            msg = f"{option} is {str(given)!r}, which cannot be read: {error}"
            raise DefinitionError(msg) from None
        return
    records: Iterable[object] = given
    for position, record in enumerate(records):
        if not isinstance(record, dict):
            kind = type(record).__name__
            msg = f"{option} is a list whose element {position} is a {kind}; give dicts or a path"
            raise DefinitionError(msg)
        yield record
