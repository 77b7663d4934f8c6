"""The names of a node's files: its name and one of these suffixes, and folders."""

from pathlib import Path
from typing import Final

from dagster_dataops.foundation.places.opening import COMPRESSED, FORMS, PLAIN, is_compressed

RESULT: Final = f"_results.{PLAIN}"
_ENDINGS: Final = tuple(f"_results.{form}" for form in FORMS)
MANIFEST: Final = f"{RESULT}.json"
CHECKPOINTS: Final = "checkpoints"  # the folder of unfinished runs
JOURNAL: Final = "journal"  # of an unfinished run, in a folder there
OTHER_VERSIONS: Final = ".other_versions"  # what other versions of this package have written
PARTITIONS: Final = "partitions"  # the folder of the partitions of a node
HISTORY: Final = ".history"  # the folder of earlier results
_PARTS: Final = "_parts"


def result_name(node: str, form: str) -> str:
    """Return the name of the file of a result of a node; the form is one of `FORMS`."""
    return f"{node}_results.{form}"


def is_result(name: str) -> bool:
    """Return whether a file has the name of a result, in any form."""
    return name.endswith(_ENDINGS)


def node_of(result: str) -> str:
    """Return the name of the node of a result, from the name of its file in any form."""
    for ending in _ENDINGS:
        if result.endswith(ending):
            return result.removesuffix(ending)
    return result


def form_of(name: str) -> str:
    """Return the form of a file, by its name."""
    return COMPRESSED if is_compressed(name) else PLAIN


def manifest_of(result: Path) -> Path:
    """Return the manifest of a result, which has the same name for every form."""
    return result.with_name(
        f"{node_of(result.name)}{MANIFEST}" if is_result(result.name) else f"{result.name}.json"
    )


def parts_of(result: Path) -> Path:
    """Return the folder of the parts of a result; only a result in parts has one."""
    return result.with_name(node_of(result.name) + _PARTS)


def checks_of(result: Path) -> Path:
    """Return the file with the outcomes of the checks of a result."""
    return result.with_name(f".{node_of(result.name)}_checks.json")
