"""Folders of this user in the temporary folder, where every user can create files.

Their names are known, so another user may have created one, or a link in its place. Such a folder
is refused. Files with names that nobody can guess need none of this: use `tempfile`.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o700
_OTHERS_WRITE: Final = stat.S_IWOTH


class ForeignFolderError(PermissionError):
    """A folder that is to be this user's own belongs to another user, or others can write to it.

    Its reason says what was found and what to do.
    """


def private_path(prefix: str) -> Path:
    """Return the path of the folder ``<prefix>-<user id>`` in the temporary folder."""
    return Path(tempfile.gettempdir()) / f"{prefix}-{os.getuid()}"


def private_folder(prefix: str) -> Path:
    """Return the folder ``<prefix>-<user id>`` in the temporary folder; create it if missing.

    Only this user can write to it: its mode is 0700. A folder of this user that only its group can
    write to, as a umask of 002 made it, becomes private.

    Args:
        prefix: The beginning of its name.

    Raises:
        ForeignFolderError: It is a link or a file, another user's, or others can write to it.
        OSError: It cannot be created.
    """
    folder = private_path(prefix)
    with suppress(FileExistsError):
        folder.mkdir(mode=_PRIVATE)
    descriptor = _opened(folder)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid():
            raise _foreign(folder, f"belongs to user {status.st_uid}")
        if status.st_mode & _OTHERS_WRITE:
            raise _foreign(folder, f"can be written by all users ({status.st_mode & 0o7777:o})")
        if status.st_mode & 0o077:
            os.fchmod(descriptor, _PRIVATE)
    finally:
        os.close(descriptor)
    return folder


def _opened(folder: Path) -> int:
    """Open a folder; links are not followed."""
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:  # its mode does not let us read it: it is another user's
        raise _foreign(folder, f"belongs to user {folder.lstat().st_uid}") from None
    except OSError:
        raise _foreign(folder, "is a link or a file") from None


def _foreign(folder: Path, problem: str) -> ForeignFolderError:
    reason = f"it {problem}, and must be a folder that only this user can write to; remove it"
    return ForeignFolderError(1, reason, str(folder))
