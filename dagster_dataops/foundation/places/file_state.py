"""`FileState`: by which a changed file is noticed without reading it."""

import os
from typing import Final, NamedTuple, Self

_SECOND_NS: Final = 1_000_000_000
_COARSE_NS: Final = 60 * _SECOND_NS  # two seconds, and the clock of a server may differ from ours
_TICK_NS: Final = 20_000_000  # the kernel's clock for files moves every 1 to 10 ms


class FileState(NamedTuple):
    """The identity of a file's content in the file system.

    The content cannot be changed without changing at least one of these values, unless it is
    changed twice within a tick of the clock of its file system; see `coarse`. The number of the
    device is none of them: it differs between machines, and after a file system is mounted again.
    Of an object on a store, a number made of its entity tag stands for the time of the last change.

    Attributes:
        inode: The inode number; of a file in parts that of the folder.
        size: The size in bytes.
        modified_ns: The time of the last change of the content, in nanoseconds. Programs can set
            it.
        changed_ns: The time of the last change of content or metadata, including links and
            permissions, in nanoseconds. Programs cannot set it.
    """

    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return the state from the result of a ``stat`` call on a file."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @property
    def coarse(self) -> bool:
        """Whether the file system counts whole seconds, or two, as ext3, FAT and some servers do.

        Then two contents of a file may have the same state.
        """
        return bool(self.changed_ns) and not self.changed_ns % _SECOND_NS

    def hides_changes(self, since_ns: int) -> bool:
        """Return whether a file may have changed since a time and still be in this state.

        Args:
            since_ns: The time, in nanoseconds since 1970.
        """
        window = _COARSE_NS if self.coarse else _TICK_NS
        return bool(self.changed_ns) and self.changed_ns > since_ns - window

    def resembles(self, other: tuple[int, ...]) -> bool:
        """Return whether all values but ``changed_ns`` are equal; a new link changes it too."""
        return self[:-1] == other[:-1]
