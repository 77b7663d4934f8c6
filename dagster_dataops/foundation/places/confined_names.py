"""Names that were read from a file, an object or a state, as paths below a folder.

Such a name may be of anybody who can write to the file or the bucket. It is used only as a relative
name that stays below its folder; any other is refused.
"""

import os
from pathlib import Path
from typing import Final

from dagster_dataops.errors import PathEscapeError

_NO_PARTS: Final = frozenset({"", ".", ".."})


def is_plain(part: object, *, windows: bool = os.name == "nt") -> bool:
    """Return whether a value is the name of one file or folder, and no path.

    Args:
        part: The value.
        windows: Whether backslashes divide paths, and colons mark drives and streams.
    """
    if not isinstance(part, str) or part in _NO_PARTS or "/" in part or "\0" in part:
        return False
    if windows and ("\\" in part or ":" in part or part.endswith((".", " "))):
        return False
    try:
        os.fsencode(part)
    except UnicodeEncodeError:  # no file can have that name
        return False
    return True


def confined(name: object, of: object) -> str:
    """Return a name if it is relative, with ``/`` between plain parts, without ``.`` and ``..``.

    Args:
        name: The name.
        of: The file, object or store that has the name, for the error.

    Raises:
        PathEscapeError: It is another.
    """
    if not isinstance(name, str) or not all(map(is_plain, name.split("/"))):
        raise PathEscapeError(str(of), name)
    return name


def below(folder: Path, name: object, of: object) -> Path:
    """Return the path of a name below a folder; see `confined`.

    Links are not followed, so the folder must be one that nobody else writes to.

    Raises:
        PathEscapeError: The name leads out of the folder.
    """
    return folder / confined(name, of)
