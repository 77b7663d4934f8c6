"""LoadedModules: detect that a file has changed since a module was imported from it."""

import os
import sys
from typing import TypeAlias

_Stamp: TypeAlias = tuple[int, int, int]  # inode, size, time of the last change in nanoseconds


class LoadedModules:
    """The modules that this process imports from now on, and their files."""

    def __init__(self) -> None:
        self._names = set(sys.modules)
        self._stamps: dict[str, _Stamp | None] = {}
        self._changed = False

    def take_note(self, began: int) -> None:
        """Record the files of the modules that were imported since the last call.

        Args:
            began: A time before their import, in nanoseconds since the epoch. A file with a later
                change counts as changed, because the imported version is unknown.
        """
        for name, module in list(sys.modules.items()):
            if name in self._names:
                continue
            self._names.add(name)
            path = _file_of(module)
            if path is not None:
                stamp = self._stamps[path] = _stamp_of(path)
                self._changed |= stamp is not None and stamp[-1] > began

    def changed(self) -> bool:
        """Return whether one of these files has changed since its import."""
        return self._changed or any(
            _stamp_of(path) != stamp for path, stamp in self._stamps.items()
        )


def _file_of(module: object) -> str | None:
    try:
        # Other ways to read the module would import lazily imported modules.
        path = object.__getattribute__(module, "__dict__").get("__file__")
    except AttributeError:
        return None
    return path if isinstance(path, str) else None


def _stamp_of(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - hundreds of them for every run
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
