"""The base of cursors over files that consist of groups of rows."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

from typing_extensions import override

from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.files.file_stages import FileCursor
from dagster_dataops.streams.files.locations import Location


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

    Args:
        location: The file.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
    """

    def __init__(self, location: Location, file_key: str | None) -> None:
        self.location = location
        self._file_key = file_key
        self._group = self._row = 0
        self._remaining: Any = iter(())
        self._length = 0

    @abstractmethod
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        """Yield chunks of records from a row of a group on. Each chunk fits in memory."""

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        for chunk in self.chunks(self._group, self._row):
            records = chunk.records
            if self._file_key is not None:
                records = [{**one, self._file_key: self.location.path} for one in records]
            self._group, self._row = chunk.group, chunk.row
            self._remaining, self._length = iter(records), len(records)
            yield self._remaining
            self._row += self._length
            self._length = 0

    @override
    def state(self) -> State:
        read = self._length - self._remaining.__length_hint__() if self._length else 0
        return [self._group, self._row + read]

    @override
    def restore(self, state: State) -> None:
        self._group, self._row = state[0] + 0, state[1] + 0  # + 0 checks that it is a number
        self._remaining, self._length = iter(()), 0

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self.restore([0, 0])
