"""Replace a file or a folder atomically, also a folder that is not empty."""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2  # RENAME_EXCHANGE, and RENAME_SWAP of macOS
_UNSUPPORTED: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def replace_folder(draft: Path, target: Path) -> Path | None:
    """Move a folder to ``target``; return the place of the folder that was there, if any.

    The folders are exchanged in one step. A file system that cannot do that gets two renames: a
    crash between them leaves no folder at ``target``.

    Args:
        draft: The new folder, on the same file system.
        target: The folder to replace; it may be missing.

    Raises:
        OSError: The file system refuses, or ``target`` is no folder.
    """
    if not os.path.lexists(target):
        draft.rename(target)
        return None
    if target.is_symlink() or not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
    if _exchange(draft, target):
        return draft
    before = draft.with_name(f"{draft.name}.before")
    target.rename(before)
    draft.rename(target)
    return before


def _exchange(path: Path, other: Path) -> bool:
    """Exchange two paths; return whether the system and the file system can."""
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(path), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))


@cache
def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        return None if swap is None else lambda first, other: int(swap(first, other, _EXCHANGE))
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return None
    return lambda first, other: int(rename(_AT_FDCWD, first, _AT_FDCWD, other, _EXCHANGE))
