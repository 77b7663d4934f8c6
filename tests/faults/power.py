"""A model of a disk: the files that remain if the power fails after any recorded call.

The guarantees are only those of POSIX. A file keeps its synced data. Any part of the data written
since may remain, or zeros in its place. A folder keeps the names that it had at its last sync. Any
name changed since may be old or new, in any order.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from tests.faults.filecalls import Entry, Operation


@dataclass
class _File:
    """Content and modification time, as synced, and the writes since then."""

    synced: bytes = b""
    synced_ns: int = 0
    modified_ns: int = 0
    pending: list[Entry] = field(default_factory=list)


@dataclass
class _Folder:
    """Names, as synced and now, and the changes since then; each sets some names at once."""

    synced: "dict[str, _Node]" = field(default_factory=dict)
    names: "dict[str, _Node]" = field(default_factory=dict)
    pending: "list[dict[str, _Node | None]]" = field(default_factory=list)

    def change(self, change: "dict[str, _Node | None]") -> None:
        _apply(self.names, change)
        self.pending.append(change)


@dataclass
class _Link:
    """A symbolic link; its path is as safe as its name."""

    path: str


_Node: TypeAlias = _File | _Folder | _Link
_Choice: TypeAlias = Callable[[int], list[bool]]  # of this many unsynced changes, which survive


def _apply(names: dict[str, _Node], change: "dict[str, _Node | None]") -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


@dataclass(frozen=True)
class Loss:
    """The fate of unsynced data.

    Attributes:
        name: The name of the loss.
        names: Which changes of names survive, for each folder.
        writes: Which writes survive, for each file.
        zeros: Whether surviving writes leave zeros.
    """

    name: str
    names: _Choice
    writes: _Choice
    zeros: bool = False


_MIXED: Final = 3
_MOST_NAMES: Final = 5


def losses(seed: int) -> Iterator[Loss]:
    """Yield `LOSSES` losses: extreme ones, some that are drawn, and those of single names."""
    chance = random.Random(seed)

    def every(count: int) -> list[bool]:
        return [True] * count

    def none(count: int) -> list[bool]:
        return [False] * count

    def last(count: int) -> list[bool]:
        return [place == count - 1 for place in range(count)]

    def some(count: int) -> list[bool]:
        return [chance.random() < 0.5 for _ in range(count)]

    yield Loss("all that was not synced is lost", none, none)
    yield Loss("all writes are lost and no names", every, none)
    yield Loss("all writes are zeros", every, every, zeros=True)
    yield Loss("all names are lost and no writes", none, every)
    yield Loss("of names and writes only the latest is kept", last, last)
    for number in range(_MIXED):
        yield Loss(f"some names and writes are lost ({number})", some, some, chance.random() < 0.3)
    for back in range(1, _MOST_NAMES + 1):
        yield Loss(f"one name is lost, {back} from the latest", partial(_all_but, back), every)


def _all_but(back: int, count: int) -> list[bool]:
    return [place != count - back for place in range(count)]


LOSSES: Final = 5 + _MIXED + _MOST_NAMES


class Disk:
    """The files below a folder, as recorded calls change them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder
        self._nodes: dict[int, _Node] = {}
        self._journals: set[int] = set()
        self._root = self._read(folder)

    def _read(self, path: Path) -> _Folder:
        folder = _Folder()
        for entry in os.scandir(path):
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                node: _Node = self._read(Path(entry.path))
            elif entry.is_symlink():
                node = _Link(str(Path(entry.path).readlink()))
            else:
                node = self._nodes.get(status.st_ino) or _File(
                    Path(entry.path).read_bytes(), status.st_mtime_ns, status.st_mtime_ns
                )
            folder.names[entry.name] = self._nodes[status.st_ino] = node
        folder.synced = dict(folder.names)
        self._nodes[path.stat().st_ino] = folder
        return folder

    # ---------------------------------------------------------------- recorded calls

    def play(self, entry: Entry) -> bytes | None:
        """Apply a recorded call; return the content of a journal if the call synced one."""
        match entry.operation:
            case Operation.WRITE | Operation.TRUNCATE:
                file = self._file(entry)
                file.pending.append(entry)
                file.modified_ns = entry.modified_ns
            case Operation.SYNC | Operation.SYNC_DATA:
                return self._sync(entry)
            case Operation.CREATE | Operation.MAKE_FOLDER:
                made = _File() if entry.operation is Operation.CREATE else _Folder()
                if isinstance(made, _File):
                    made.modified_ns = made.synced_ns = entry.modified_ns
                self._nodes[entry.inode] = made
                self._change(entry.path, made)
            case Operation.SYMLINK:
                self._nodes[entry.inode] = link = _Link(os.fsdecode(entry.data))
                self._change(entry.path, link)
            case Operation.LINK:
                self._change(entry.target, self._nodes[entry.inode])
            case Operation.RENAME:
                self._rename(entry)
            case _:
                self._change(entry.path, None)
        return None

    def _file(self, entry: Entry) -> _File:
        file = self._nodes[entry.inode]
        assert isinstance(file, _File), entry
        return file

    def _sync(self, entry: Entry) -> bytes | None:
        node = self._nodes[entry.inode]
        if isinstance(node, _Folder):
            node.synced, node.pending = dict(node.names), []
            return None
        assert isinstance(node, _File), entry
        node.synced, node.pending = _written(node, [True] * len(node.pending), zeros=False), []
        if entry.operation is Operation.SYNC:  # the other one need not write the time
            node.synced_ns = entry.modified_ns
        return node.synced if id(node) in self._journals else None

    def _place(self, path: str) -> tuple[_Folder, str]:
        *above, name = Path(path).relative_to(self._path).parts
        folder: _Node = self._root
        for part in above:
            assert isinstance(folder, _Folder), path
            folder = folder.names[part]
        assert isinstance(folder, _Folder), path
        return folder, name

    def _change(self, path: str, node: _Node | None) -> None:
        folder, name = self._place(path)
        folder.change({name: node})
        self._note_journal(name, node)

    def _note_journal(self, name: str, node: _Node | None) -> None:
        if name == "journal" and isinstance(node, _File):
            self._journals.add(id(node))

    def _rename(self, entry: Entry) -> None:
        before, old = self._place(entry.path)
        after, new = self._place(entry.target)
        node = before.names[old]
        self._note_journal(new, node)
        if before is after:
            before.change({old: None, new: node})
        else:
            before.change({old: None})
            after.change({new: node})

    # ---------------------------------------------------------------- remaining files

    def leave(self, folder: Path, loss: Loss) -> None:
        """Write the content of the disk after a loss of power to ``folder``."""
        shutil.rmtree(folder, ignore_errors=True)
        self._leave(self._root, folder, loss, {})

    def _leave(
        self, node: _Folder, path: Path, loss: Loss, left: "dict[int, tuple[bytes, int]]"
    ) -> None:
        path.mkdir()
        names = dict(node.synced)
        for kept, change in zip(loss.names(len(node.pending)), node.pending, strict=True):
            if kept:
                _apply(names, change)
        for name, below in names.items():
            if isinstance(below, _Folder):
                self._leave(below, path / name, loss, left)
                continue
            if isinstance(below, _Link):
                (path / name).symlink_to(below.path)
                continue
            if id(below) not in left:  # all names of a file show the same
                left[id(below)] = _left(below, loss)
            content, modified_ns = left[id(below)]
            (path / name).write_bytes(content)
            os.utime(path / name, ns=(modified_ns, modified_ns))


def _left(file: _File, loss: Loss) -> tuple[bytes, int]:
    kept = loss.writes(len(file.pending))
    modified_ns = file.modified_ns if kept and all(kept) else file.synced_ns
    return _written(file, kept, zeros=loss.zeros), modified_ns


def _written(file: _File, kept: list[bool], *, zeros: bool) -> bytes:
    content = bytearray(file.synced)
    for survives, entry in zip(kept, file.pending, strict=True):
        if not survives:
            continue
        if entry.operation is Operation.TRUNCATE:
            content = content[: entry.offset].ljust(entry.offset, b"\0")
            continue
        end = entry.offset + len(entry.data)
        content = content.ljust(end, b"\0")
        content[entry.offset : end] = bytes(len(entry.data)) if zeros else entry.data
    return bytes(content)
