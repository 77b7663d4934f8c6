"""The forms of a file of lines: plain, or in compressed frames. Both have the same text."""

from typing import Final

PLAIN: Final = "jsonl"
COMPRESSED: Final = "jsonl.zst"
FORMS: Final = (PLAIN, COMPRESSED)
_ENDINGS: Final = (f".{COMPRESSED}", f".{COMPRESSED}.draft")


def is_compressed(name: str) -> bool:
    """Return whether a file has the name of a compressed one, or of the draft of one."""
    return name.endswith(_ENDINGS)
