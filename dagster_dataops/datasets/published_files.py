"""The names of a node's files: its name and one of these suffixes, and folders."""

from pathlib import Path
from typing import Final

RESULT: Final = "_results.jsonl"
MANIFEST: Final = f"{RESULT}.json"
CHECKPOINTS: Final = "checkpoints"  # the folder of unfinished runs
OTHER_VERSIONS: Final = ".other_versions"  # what other versions of this package have written
_PARTS: Final = "_parts"


def parts_of(result: Path) -> Path:
    """Return the folder of the parts of a result; only a result in parts has one."""
    return result.with_name(result.name.removesuffix(RESULT) + _PARTS)
