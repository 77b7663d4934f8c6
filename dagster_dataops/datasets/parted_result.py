"""Results in parts, as versions up to 0.2 wrote them on request: they are read, and not written.

The path of such a result is a link to the folder of its parts::

    docs_results.jsonl -> docs_parts/5f0c...e1       the result
    docs_parts/5f0c...e1/docs_results-00000.jsonl    its first part
    docs_parts/5f0c...e1.jsonl                       the listing: a row for each part, in order
"""

import os
from pathlib import Path

from dagster_dataops.datasets.artefact import damage
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.version_folders import discard


def is_intact(path: Path, version: str) -> bool:
    """Return whether a result is one file, or the link to its undamaged parts.

    Args:
        path: The result; it exists.
        version: The name of the folder of its parts; empty for one file.
    """
    if not version:
        return path.is_file()
    place = path.resolve()
    return place.name == version and not damage(place)


def link_parts(path: Path, place: Path) -> None:
    """Make the path of a result a relative link to the folder of its parts.

    Raises:
        OSError: The disk refuses.
    """
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    draft.symlink_to(os.path.relpath(place, path.parent))
    draft.replace(path)


def remove_parts(parts: Path) -> None:
    """Remove the parts of an earlier result: rename at once, delete in the background.

    Args:
        parts: The folder of all parts of a node; it may be missing.

    Raises:
        OSError: The disk refuses.
    """
    if parts.exists():
        discard(parts)
