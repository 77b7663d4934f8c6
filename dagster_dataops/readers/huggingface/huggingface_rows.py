"""The stage and cursor of ``read_huggingface``, resumable at any row."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Final

import datasets
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.hashing.values import digest
from dagster_dataops.readers.arrow.arrow_columns import RecordColumns
from dagster_dataops.streams.core.stage import Cursor, ReadContext, SourceStage, State

_ROWS: Final = 1000  # converted to records at once
_MAX_DIGESTED_ROWS: Final = 32  # rows that enter the identity


@dataclass(frozen=True, eq=False)
class HuggingFaceRows(SourceStage):
    """Yield the rows of a dataset in memory or on disk."""

    name: ClassVar[str] = "read_huggingface"
    dataset: Any = field(repr=False)
    columns: tuple[str, ...] | None

    @override
    def open(self, context: ReadContext) -> Cursor:
        return RowsCursor(self)

    @override
    def options(self) -> dict[str, Any]:
        return {"columns": self.columns}

    @override
    def identity(self) -> object:
        found = self.loaded()
        step = max(1, len(found) // _MAX_DIGESTED_ROWS)
        rows = [found[at : at + 1].to_pylist() for at in range(0, len(found), step)]
        return [len(found), digest([str(found.features), rows])]

    def loaded(self) -> Any:
        """Return the dataset; slices of it are Arrow tables.

        Raises:
            StreamSourceError: The dataset cannot be loaded, or has splits.
        """
        found = self.dataset
        if isinstance(found, (str, os.PathLike)):
            path = os.fspath(found)
            try:
                found = datasets.load_from_disk(path)
            except Exception as error:
                reason = f"cannot be loaded as a dataset: {error}"
                raise StreamSourceError(path, reason) from error
        if isinstance(found, datasets.DatasetDict):
            reason = f"has splits; read one of them: {sorted(found)}"
            raise StreamSourceError(self.place, reason)
        return found.with_format("arrow")

    @property
    def place(self) -> str:
        """The dataset's path or type, for messages."""
        given = self.dataset
        is_path = isinstance(given, (str, os.PathLike))
        return os.fspath(given) if is_path else f"{type(given).__name__} in memory"


class RowsCursor(Cursor):
    """Read rows. The state is the index of the next row."""

    def __init__(self, stage: HuggingFaceRows) -> None:
        self._stage = stage
        self._start = self._length = 0
        self._remaining: Any = iter(())

    @override
    def items(self) -> Iterator[Any]:
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator[Iterator[Any]]:
        dataset, columns = self._stage.loaded(), None
        while self._start < len(dataset):
            table = dataset[self._start : self._start + _ROWS]
            columns = columns or RecordColumns(self._stage.place, table.schema, self._stage.columns)
            records = columns.records(table)
            self._remaining, self._length = iter(records), len(records)
            yield self._remaining
            self._start += self._length
            self._length = 0

    @override
    def state(self) -> State:
        read = self._length - self._remaining.__length_hint__() if self._length else 0
        return self._start + read

    @override
    def restore(self, state: State) -> None:
        self._start, self._length, self._remaining = state + 0, 0, iter(())

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self.restore(0)
