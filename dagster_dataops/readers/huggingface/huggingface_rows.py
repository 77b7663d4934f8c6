"""The stage of ``read_huggingface``, resumable at any row."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final

import datasets
import pyarrow as pa
import pyarrow.ipc

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.readers.arrow.arrow_columns import UNREADABLE, RecordColumns
from dagster_dataops.readers.huggingface.media_columns import media_columns
from dagster_dataops.streams.core.stage import BlockwiseCursor, SourceStage

_ROWS: Final = 1000  # converted to records at once
_MAX_DIGESTED_ROWS: Final = 32  # rows that enter the identity


@dataclass(eq=False)
class HuggingFaceRows(BlockwiseCursor, SourceStage):
    """Yield the rows of a dataset in memory or on disk. The index of the next row is saved."""

    name: ClassVar[str] = "read_huggingface"
    saved: ClassVar[tuple[str, ...]] = ("item_index", "failed_before")
    left_out: ClassVar[frozenset[str]] = frozenset({"dataset"})
    added_later: ClassVar[frozenset[str]] = frozenset({"missing"})
    dataset: Any = field(repr=False)
    columns: tuple[str, ...] | None
    missing: tuple[str, ...]

    @override
    def reset(self) -> None:
        super().reset()
        self._failed_before = self.failed

    @override
    def with_names(self, state: Any) -> dict[str, Any]:
        return super().with_names([state, 0] if isinstance(state, int) else state)

    @override
    def identity(self) -> object:
        loaded = self.loaded()
        step = max(1, len(loaded) // _MAX_DIGESTED_ROWS)
        rows = [_content(loaded[at : at + 1]) for at in range(0, len(loaded), step)]
        return [len(loaded), digest([str(loaded.features), rows])]

    def loaded(self) -> Any:
        """Return the dataset; slices of it are Arrow tables."""
        rows = self.dataset
        if isinstance(rows, (str, os.PathLike)):
            path = os.fspath(rows)
            try:
                rows = datasets.load_from_disk(path)
            except Exception as error:
                reason = f"cannot be loaded as a dataset: {error}"
                raise StreamSourceError(path, reason) from error
        if isinstance(rows, datasets.DatasetDict):
            reason = f"has splits; read one of them: {sorted(rows)}"
            raise StreamSourceError(self.place, reason)
        return rows.with_format("arrow")

    @property
    def place(self) -> str:
        """The dataset's path or type, for messages."""
        source = self.dataset
        is_path = isinstance(source, (str, os.PathLike))
        return os.fspath(source) if is_path else f"{type(source).__name__} in memory"

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        dataset, columns = self.loaded(), None
        while self.first_index < len(dataset):
            table = dataset[self.first_index : self.first_index + _ROWS]
            if columns is None:
                schema, chosen = table.schema, self.columns
                columns = RecordColumns(
                    self.place,
                    schema,
                    chosen,
                    self.missing,
                    parse_json=True,
                    conversions=media_columns(dataset.features.arrow_schema),
                )
            first = self.first_index
            for begin, records in columns.good_rows(
                table, partial(self._row, first), self.counter.handle
            ):
                self.first_index = first + begin
                self._failed_before = self.counter.count
                yield from self.indexed_block(records)
            self.first_index = first + len(table)

    def _row(self, first: int, at: int) -> str:
        return f"{self.place}, row {first + at + 1}"


def _content(rows: pa.Table) -> Any:
    """Return the content of rows, for the identity; as bytes if Python cannot hold a value."""
    try:
        return rows.to_pylist()
    except UNREADABLE:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        return sink.getvalue().to_pybytes()
