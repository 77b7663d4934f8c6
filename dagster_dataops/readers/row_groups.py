"""The base of cursors over files that consist of groups of rows."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.files.file_stages import FileCursor


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
    """Read groups of rows. The state is [group, index of the row in it].

    The stage has the field ``file_key``: the key under which each record holds its file path, or
    ``None`` for no such key.
    """

    saved: ClassVar[tuple[str, ...]] = ("_group", "item_index")

    @abstractmethod
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        """Yield chunks of records from a row of a group on. Each chunk fits in memory."""

    @override
    def reset(self) -> None:
        super().reset()
        self._group = 0

    @override
    def restore(self, state: State) -> None:
        super().restore(state)
        self._group += 0  # raises TypeError unless it is a number

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        key = self.stage.file_key
        for chunk in self.chunks(self._group, self.first_index):
            records = chunk.records
            if key is not None:
                records = [{**one, key: self.location.path} for one in records]
            self._group, self.first_index = chunk.group, chunk.row
            yield from self.indexed_block(records)
