"""Base of the stages that read files one after another, resumable at any position."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from dagster_dataops.errors import DamagedFileError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import BlockwiseCursor, NestingCursor, SourceStage, State
from dagster_dataops.streams.files.file_sets import FileSet
from dagster_dataops.streams.files.locations import Location


class Origin(NamedTuple):
    """The keys of a record for the path of its file and its line, from 1; ``None`` for none."""

    file_key: str | None = None
    line_key: str | None = None


NOWHERE: Final = Origin()


class FileCursor(BlockwiseCursor):
    """A cursor over one file, at its start; nothing is read before the first item is requested."""

    def __init__(self, stage: Any, location: Location, counter: FailureCounter) -> None:
        self.stage, self.location, self.counter = stage, location, counter
        self.reset()


@dataclass(eq=False)
class FileStage(NestingCursor, BlockwiseCursor, SourceStage):
    """Yield the items of some files, one file after another.

    The number of the file is saved, and the position in it. The rest of a damaged file is one
    failed item.
    """

    saved: ClassVar[tuple[str, ...]] = ("_number", "within", "failed_before")
    left_out: ClassVar[frozenset[str]] = frozenset({"files", "block_size"})
    file_cursor: ClassVar[type[FileCursor]]
    files: FileSet

    @override
    def identity(self) -> object:
        return self.files.identity()

    @override
    def reset(self) -> None:
        self._number, self._failed_before = 0, self.failed
        self.within = None

    @override
    def state(self) -> State:  # as the base does it, but it is called for every item
        within = self.to_restore if self.inner is None else self.inner.state()
        return {"number": self._number, "within": within, "failed_before": self._failed_before}

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        for number, location in enumerate(self.files.locations()):
            if number < self._number:
                continue
            inner = self.file_cursor(self, location, self.counter)
            self.enter(inner)
            self._number = number
            try:
                yield from inner.blocks()
            except DamagedFileError as error:
                self.counter.handle(location.path, error)
