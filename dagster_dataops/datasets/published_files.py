"""The names of a node's files: its name and one of these suffixes, and folders."""

from pathlib import Path
from typing import Final

RESULT: Final = "_results.jsonl"
MANIFEST: Final = f"{RESULT}.json"
CHECKPOINTS: Final = "checkpoints"  # the folder of unfinished runs
OTHER_VERSIONS: Final = ".other_versions"  # what other versions of this package have written
HISTORY: Final = ".history"  # the folder of earlier results
_PARTS: Final = "_parts"


def parts_of(result: Path) -> Path:
    """Return the folder of the parts of a result; only a result in parts has one."""
    return result.with_name(result.name.removesuffix(RESULT) + _PARTS)


def checks_of(result: Path) -> Path:
    """Return the file with the outcomes of the checks of a result."""
    return result.with_name(f".{result.name.removesuffix(RESULT)}_checks.json")
