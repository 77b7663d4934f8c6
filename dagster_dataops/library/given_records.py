"""Options that are records: a list of them, or the path of a jsonl file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DefinitionError
from dagster_dataops.records import Record

Given: TypeAlias = str | os.PathLike[str] | Sequence[Record]


def given_records(option: str, given: Given) -> Iterator[Record]:
    """Yield the records of an option.

    Args:
        option: The name of the option, for errors.
        given: Records, or the path of a jsonl file.

    Raises:
        DefinitionError: It is none of these.
        InputError: The file cannot be read.
    """
    if isinstance(given, (str, os.PathLike)):
        yield from JsonlDataset.of_file(given)
        return
    records: Iterable[object] = given
    for position, record in enumerate(records):
        if not isinstance(record, dict):
            kind = type(record).__name__
            msg = f"{option} is a list whose element {position} is a {kind}; give dicts or a path"
            raise DefinitionError(msg)
        yield record
