"""Base of the stages that read files one after another, resumable at any position."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.errors import StreamStateError
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import Cursor, ReadContext, SourceStage, State
from dagster_dataops.streams.files.file_sets import FileSet
from dagster_dataops.streams.files.locations import Location


class Origin(NamedTuple):
    """The keys under which a record holds its file and its line number; ``None`` for no such key.

    Attributes:
        file_key: The key of the file path.
        line_key: The key of the line number, counted from 1.
    """

    file_key: str | None = None
    line_key: str | None = None


NOWHERE: Final = Origin()


class FileCursor(Cursor):
    """A cursor over one file."""

    @abstractmethod
    def blocks(self) -> Iterator[Iterator[Any]]:
        """Yield the items from the current position, in iterators over blocks."""

    @override
    def items(self) -> Iterator[Any]:
        return chain.from_iterable(self.blocks())


@dataclass(frozen=True, eq=False)
class FileStage(SourceStage):
    """Yield the items of some files."""

    files: FileSet

    @abstractmethod
    def open_file(self, location: Location, counter: FailureCounter) -> FileCursor:
        """Return a cursor at the start of one file, without reading anything."""

    @override
    def open(self, context: ReadContext) -> Cursor:
        return FilesCursor(self, context.failures.counter(self.name))

    @override
    def options(self) -> dict[str, Any]:
        left_out = {"files", "block_size"}  # location and block size do not change the items
        return {name: one for name, one in super().options().items() if name not in left_out}

    @override
    def identity(self) -> object:
        return self.files.identity()


class FilesCursor(Cursor):
    """Read files one after another. The state is the index of the file and the position in it.

    Args:
        stage: The stage that defines the files.
        counter: Counts failed items.
    """

    def __init__(self, stage: FileStage, counter: FailureCounter) -> None:
        self._stage = stage
        self._counter = counter
        self._number = self._failed_before = 0
        self._inner: FileCursor | None = None
        self._to_restore: State = None  # the position to restore in the next file

    @override
    def items(self) -> Iterator[Any]:
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator[Iterator[Any]]:
        for number, location in enumerate(self._stage.files.locations()):
            if number < self._number:
                continue
            inner = self._stage.open_file(location, self._counter)
            if self._to_restore is not None:
                _restore_inner(inner, self._to_restore)
            self._number, self._inner, self._to_restore = number, inner, None
            yield from inner.blocks()

    @override
    def state(self) -> State:
        within = self._to_restore if self._inner is None else self._inner.state()
        place = [self._number, within]
        return [*place, self._failed_before] if self._counter.saved else place

    @override
    def restore(self, state: State) -> None:
        self._inner = None
        number, self._to_restore = state[0], state[1]
        self._number = number + 0  # raises TypeError unless it is a number
        if self._counter.saved:
            self._counter.count = self._failed_before = state[2]

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._number, self._inner, self._to_restore = 0, None, None
        self._failed_before = self._counter.count


def _restore_inner(inner: FileCursor, state: State) -> None:
    try:
        inner.restore(state)
    except (TypeError, ValueError, LookupError) as error:
        msg = f"its position is damaged: {type(error).__name__}: {error}"
        raise StreamStateError(msg) from error
