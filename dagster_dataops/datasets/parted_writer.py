"""PartedWriter: write a result in parts.

The path of the result is a link to the folder of its present parts::

    docs_results.jsonl -> docs_parts/5f0c...e1       the result
    docs_parts/5f0c...e1/docs_results-00000.jsonl    its first part
    docs_parts/5f0c...e1.jsonl                       the listing: a row for each part, in order

The folder is named after the digest of the listing and is never changed after it was published. So
a result is replaced by one rename, that of the link, like a result that is one file.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import xxhash

from dagster_dataops.byte_ranges import part_name
from dagster_dataops.concurrency.background import deleting
from dagster_dataops.datasets.artefact import damage
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import (
    draft_of,
    make_folder,
    make_folder_durably,
    storage,
    sync_folder,
)
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.datasets.version_folders import discard, put_version
from dagster_dataops.datasets.writer import JsonlWriter

if TYPE_CHECKING:
    from dagster_dataops.records import Record

_DRAFT: Final = ".draft"


class PartedWriter:
    """Collects lines in parts of equal numbers of lines; the last part may have fewer.

    Use it under the lock of the node's folder. `finish` makes the draft of ``path``, a link.

    Args:
        path: The result.
        parts: The folder of its parts.
        records: Lines a part, at least 1.

    Attributes:
        version: The name of the folder in ``parts`` with the parts; empty before `finish`.
    """

    def __init__(self, path: Path, parts: Path, records: int) -> None:
        self.path = path
        self.rows = 0
        self.size_bytes = 0
        self.version = ""
        self._parts = parts
        self._records = records
        self._digest = xxhash.xxh3_128()
        self._listing: list[Record] = []
        self._draft = parts / _DRAFT
        make_folder_durably(parts)
        with storage(self._draft, "create the folder"):
            shutil.rmtree(self._draft, ignore_errors=True)
        make_folder(self._draft)
        self._part = self._new_part()

    def write(self, lines: bytes, rows: int = 1) -> None:
        """Append ``lines``, which hold ``rows`` records and end with a newline."""
        self._digest.update(lines)
        self.rows += rows
        self.size_bytes += len(lines)
        if self._part.rows + rows <= self._records:
            self._part.write(lines, rows)
            return
        left = split_lines(lines)
        while left:
            if self._part.rows == self._records:
                self._finish_part()
                self._part = self._new_part()
            room = self._records - self._part.rows
            taken, left = left[:room], left[room:]
            self._part.write(b"".join(taken), len(taken))

    def finish(self) -> JsonlDataset:
        """Make the parts and the link durable; return the handle after publication."""
        self._finish_part()
        with storage(self._draft, "publish the parts"):
            sync_folder(self._draft)
            place = put_version(self._draft, self._listing)
            self.version = place.name
            link_draft(self.path, place)
        return JsonlDataset(
            path=self.path,
            size_bytes=self.size_bytes,
            rows=self.rows,
            fingerprint=f"xxh3:{self._digest.hexdigest()}",
        )

    def _new_part(self) -> JsonlWriter:
        name = part_name(self.path.stem, len(self._listing))
        return JsonlWriter(self._draft / name)

    def _finish_part(self) -> None:
        made = self._part.finish()
        with storage(made.path, "write"):
            draft_of(made.path).rename(made.path)
        self._listing.append(
            {
                "path": made.path.name,
                "size_bytes": made.size_bytes,
                "digest": made.fingerprint,
                "rows": made.rows,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._part.__exit__()
        shutil.rmtree(self._draft, ignore_errors=True)
        if kind is not None:
            with suppress(OSError):
                draft_of(self.path).unlink(missing_ok=True)


def link_draft(path: Path, place: Path) -> None:
    """Make the draft of a result in parts: a relative link to their folder.

    Raises:
        OSError: The disk refuses.
    """
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    draft.symlink_to(os.path.relpath(place, path.parent))


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


def remove_other_parts(parts: Path, *versions: str) -> None:
    """Remove all parts but those of some versions: rename at once, delete in the background.

    Args:
        parts: The folder of the parts of a node; it may be missing.
        versions: The names of the versions to keep: the present one, and the one before it, which
            readers may have begun to read. Empty names are ignored.

    Raises:
        OSError: The disk refuses.
    """
    if not parts.exists():
        return
    kept = {name for one in versions if one for name in (one, f"{one}.jsonl")}
    left = False
    for path in list(parts.iterdir()):
        if path.name in kept:
            left = True
        else:
            discard(path)
    if not left:
        deleting.run(parts.rmdir)


def version_at(path: Path) -> str:
    """Return the version of the parts that a result links to; empty for any other file."""
    return path.readlink().name if path.is_symlink() else ""
