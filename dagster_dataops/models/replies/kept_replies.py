"""`load_replies`: where the replies of a node are, and how to read them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.configuration import folder_at
from dagster_dataops.datasets.durable_files import make_folder
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.models.replies.reply_store import StoredReply, stored_replies

_NAME: Final = "replies.jsonl"


def replies_file(folder: Path, *, keep: bool) -> Path:
    """Return the file for the replies of a node; replies that it has are moved there.

    Without ``keep``, it is among the checkpoints, which are removed when the result is published.
    """
    kept, passing = _places(folder)
    wanted, other = (kept, passing) if keep else (passing, kept)
    if other.exists() and not wanted.exists():
        make_folder(wanted.parent)
        with suppress(FileNotFoundError):  # another process of this run has moved it
            other.replace(wanted)
    return wanted


def kept_file(folder: Path) -> Path | None:
    """Return the file with the replies of a node; ``None`` if it has none."""
    return next((path for path in _places(folder) if path.exists()), None)


def load_replies(folder: str | os.PathLike[str]) -> Iterator[StoredReply]:
    """Return the replies that a node keeps, in the order in which they came.

    Replies of the wrong form, and replies for earlier results, are among them.

    Args:
        folder: The folder of the node, or the folder of one of its partitions.

    Raises:
        ResultMissingError: The node keeps no replies.
    """
    place = folder_at(folder).path
    for path in _places(place):
        if path.exists():
            return stored_replies(path)
    reason = "it has no replies: nothing was asked there, or with keep_replies=False"
    raise ResultMissingError(str(place), reason)


def _places(folder: Path) -> tuple[Path, Path]:
    """Return the file of replies that are kept, and of those that are not."""
    return folder / "replies" / _NAME, NodeFolder(folder, folder.name).checkpoints / _NAME
