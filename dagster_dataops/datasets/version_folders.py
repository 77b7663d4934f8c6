"""Put versions of a folder in place, and remove them; see `artefact` for their form."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.artefact import damage, digest_of_listing, listing_of
from dagster_dataops.datasets.durable_files import sync_folder, write_durably
from dagster_dataops.foundation.concurrency.background import deleting
from dagster_dataops.records import Record, encode

REMOVED: Final = ".removed-"  # begins the names of folders that are deleted in the background


def put_version(draft: Path, rows: Sequence[Record]) -> Path:
    """Make a durable draft a version in the same folder; return the folder of the version.

    A draft that equals an intact version is removed, and that version stays.

    Args:
        draft: The folder with the files.
        rows: The listing of the files.

    Raises:
        OSError: The disk refuses.
    """
    version = draft.with_name(digest_of_listing(rows))
    if not damage(version):
        discard(draft)
        return version
    discard(version)
    write_durably(listing_of(version), b"".join(map(encode, rows)))
    draft.rename(version)
    sync_folder(draft.parent)
    return version


def discard(path: Path) -> None:
    """Remove a folder with its listing, or a file; the files of a folder in the background.

    Raises:
        OSError: The disk refuses.
    """
    if path.is_dir():
        removed = path.with_name(f"{REMOVED}{os.urandom(6).hex()}")
        with suppress(FileNotFoundError):  # an earlier deletion goes on in the background
            path.rename(removed)
        deleting.run(partial(shutil.rmtree, removed, ignore_errors=True))
        path = listing_of(path)
    path.unlink(missing_ok=True)
