"""Decide by the number of a format whether this version of the package reads a file or state.

A file or state that is written as JSON notes the number of its format, from 1 on. A number that is
greater than the newest known one was written by a newer version: that is refused, and nothing is
touched. Journals and manifests note texts instead, see `checkpoints.journal.journal_reader`.
"""

import re
from typing import Final

from dagster_dataops.errors import NewerVersionError

_NUMBERED: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\b")


def read_number(noted: object, newest: int, place: str) -> int | None:
    """Return the number of a format that this version reads.

    Args:
        noted: What the file or state notes as its format.
        newest: The number of the newest format that this version reads.
        place: What notes it, for the error.

    Returns:
        The number, 1 to ``newest``; ``None`` if ``noted`` is none, such as that of damaged files.

    Raises:
        NewerVersionError: It is that of a newer version, also as a text such as ``"7"``.
    """
    if type(noted) is int and 1 <= noted <= newest:
        return noted
    match = _NUMBERED.match(str(noted)) if type(noted) in {int, float, str} else None
    if (
        match is not None and float(match[1]) > newest
    ):  # an `int` of a text may have too many digits
        raise NewerVersionError(place, str(noted), str(newest))
    return None
