"""The base of cursors over files that consist of groups of rows."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.file_stages import FileCursor

_PARTS_BEFORE: Final = 2  # of states before failures were counted


class RowChunk(NamedTuple):
    """Some consecutive records of a group.

    Attributes:
        group: The group: its index from 0, or its byte offset.
        row: The index of the first record in the group, from 0.
        records: The records, in order.
    """

    group: int
    row: int
    records: list[dict[str, Any]]


class GroupCursor(FileCursor):
    """Read groups of rows. The group is saved, and the index of the next row in it.

    The stage has the field ``file_key``: the key under which each record holds its file path, or
    ``None`` for no such key.
    """

    saved: ClassVar[tuple[str, ...]] = ("_group", "item_index", "failed_before")

    @abstractmethod
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        """Yield chunks of records from a row of a group on. Each chunk fits in memory.

        Failures are recorded between the chunks.
        """

    def located(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return records with the columns of their folders and the path of their file."""
        return self.location.located(records, self.stage.file_key)

    @override
    def reset(self) -> None:
        super().reset()
        self._group, self._failed_before = 0, self.failed

    @override
    def with_names(self, state: Any) -> dict[str, Any]:
        return super().with_names([*state, 0] if len(state) == _PARTS_BEFORE else state)

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        for chunk in self.chunks(self._group, self.first_index):
            records = self.located(chunk.records)
            self._group, self.first_index = chunk.group, chunk.row
            self._failed_before = self.counter.count
            yield from self.indexed_block(records)
