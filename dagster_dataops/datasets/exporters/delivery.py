"""`Delivery`: write an export whole or not at all, and know whether it is current.

An export is written to a draft folder beside its target, synced, and renamed. A folder is exchanged
for the one before it in one step. Then a receipt is written to the folder of the node: the origin
of the export and the names, sizes and digests of its files. An export is current if the receipt has
its origin and its files are unchanged since. A draft that a crash left is removed by the next
export to the same target.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Self

import orjson
import xxhash

from dagster_dataops.datasets.artefact import is_unchanged, list_files
from dagster_dataops.datasets.durable_files import (
    make_folder_durably,
    read_if_there,
    storage,
    sync_folder,
    sync_tree,
    write_durably,
)
from dagster_dataops.datasets.exporters.exporter import Exporter, ExportRecords, UnfitValueError
from dagster_dataops.datasets.exporters.folder_swap import replace_folder
from dagster_dataops.datasets.published_files import is_result, manifest_of
from dagster_dataops.errors import ExportError, StorageError
from dagster_dataops.foundation.concurrency.file_lock import lock_at_once, unused
from dagster_dataops.foundation.hashing.file_digests import has_content
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.foundation.places.confined_names import confined
from dagster_dataops.records import Record

_SHOWN: Final = 3  # foreign files in an error
_DRAFT: Final = ".dataops-export-"  # followed by a digest of the name, and by a random number
_MARK: Final = ".dataops_export"  # in a folder: it was written by an export, and may be replaced


@dataclass(frozen=True, slots=True)
class Exported:
    """A complete export.

    Attributes:
        target: The absolute path of the file or folder.
        format: The name of the format.
        origin: The result, format and options that it was made from.
        rows: The number of records.
        files: The path, size and digest of each file; paths are relative to the folder.
    """

    target: Path
    format: str
    origin: str
    rows: int
    files: list[Record]

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(int(str(file["size_bytes"])) for file in self.files)

    @classmethod
    def load(cls, receipt: Path) -> "Exported | None":
        """Return the export of a receipt; ``None`` without a valid one.

        Facts that are not known are ignored. A new one needs a default for receipts before it.
        """
        data = read_if_there(receipt, "read the receipt of the export")
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            facts = orjson.loads(data)
            for row in facts["files"]:  # that of an empty folder ends with a slash
                confined(row["path"].removesuffix("/"), receipt)
            known = {field.name: facts[field.name] for field in fields(cls)}
            return cls(**{**known, "target": Path(facts["target"])})
        return None

    def save(self, receipt: Path) -> None:
        """Write the receipt."""
        facts = {**asdict(self), "target": str(self.target)}
        write_durably(receipt, orjson.dumps(facts, option=orjson.OPT_INDENT_2))


class Delivery:
    """One export. Use it as a context manager: it removes the draft at the end.

    Args:
        exporter: Writes the records.
        target: The absolute path of the file or folder.
        receipt: The file of the receipt.
        origin: The result, format and options that the export is made from.
    """

    def __init__(self, exporter: Exporter, target: Path, receipt: Path, origin: str) -> None:
        self._exporter = exporter
        self._target = target
        self._receipt = receipt
        self._origin = origin
        self._draft: Path | None = None
        self._lock = -1
        self._exported: Exported | None = None

    def current(self) -> Exported | None:
        """Return the export if it is at the target already, complete and of the same origin."""
        receipt = Exported.load(self._receipt)
        if receipt is None or (receipt.origin, receipt.target) != (self._origin, self._target):
            return None
        written_ns = self._receipt.stat().st_ctime_ns
        folder = self._target.parent if self._exporter.place == "file" else self._target
        names = {self._target.name} if folder != self._target else _names_in(folder)
        if names != {str(row["path"]) for row in receipt.files}:
            return None
        unchanged = all(
            _is_unchanged(folder / str(row["path"]), row, written_ns) for row in receipt.files
        )
        return receipt if unchanged else None

    def write(self, records: ExportRecords) -> Exported:
        """Write the draft; nothing at the target changes.

        Raises:
            ExportError: The format cannot hold a record.
            StorageError: The disk refuses, the target is the input or a result, or the folder at
                the target holds other files.
        """
        if self._exporter.place == "file":
            self._check_not_ours(records.location)
        else:
            self._check_replaceable()
        place = self._new_draft()
        with storage(self._target, "export the result to it"):
            try:
                self._exporter.write(records, place)
            except UnfitValueError as error:
                path, line = records.place_of(error.index)
                facts = (error.index, str(path), line, error.column, error.found, error.remedy)
                raise ExportError(str(self._target), *facts) from None
            files = self._files_of(place)
        self._exported = Exported(
            self._target, self._exporter.format, self._origin, records.rows, files
        )
        return self._exported

    def _files_of(self, place: Path) -> list[Record]:
        """Sync the draft and return its files."""
        single = self._exporter.place == "file"
        folder = place.parent if single else place
        try:
            files = list_files(folder)
        except ValueError as error:
            raise StorageError(str(self._target), "export the result to it", str(error)) from None
        if single and [row["path"] for row in files] != [place.name]:
            reason = f"the exporter {self._exporter.format} did not write one file to its place"
            raise StorageError(str(self._target), "export the result to it", reason)
        if not single:
            (folder / _MARK).write_bytes(b"")
        sync_tree(folder)
        return files

    def place(self) -> Exported:
        """Put the draft in place of the earlier export, and write the receipt.

        Raises:
            StorageError: The disk refuses.
        """
        exported, draft = self._exported, self._draft
        if exported is None or draft is None:
            msg = "write() comes before place()"
            raise RuntimeError(msg)
        with storage(self._target, "replace the export"):
            if self._exporter.place == "file":
                self._place_file(exported, draft / self._target.name)
            else:
                self._check_replaceable()
                before = replace_folder(draft / self._target.name, self._target)
                sync_folder(self._target.parent)
                if before is not None:
                    shutil.rmtree(before, ignore_errors=True)
        exported.save(self._receipt)
        return exported

    def _place_file(self, exported: Exported, draft: Path) -> None:
        """Rename the file, unless the target holds the same bytes already."""
        (row,) = exported.files
        if not has_content(self._target, exported.size_bytes, str(row["digest"])):
            draft.replace(self._target)
            sync_folder(self._target.parent)

    def _new_draft(self) -> Path:
        """Return the path of the draft in a new folder; remove those that a crash left."""
        parent = self._target.parent
        make_folder_durably(parent)
        prefix = f"{_DRAFT}{xxhash.xxh3_64_hexdigest(os.fsencode(self._target.name))}-"
        with storage(parent, "create the draft of the export"):
            for path in list(parent.iterdir()):
                if path.name.startswith(prefix):
                    _remove_unused(path)
            while self._draft is None:
                self._draft = self._locked(parent / f"{prefix}{os.urandom(6).hex()}")
            place = self._draft / self._target.name
            if self._exporter.place != "file":
                place.mkdir()
        return place

    def _locked(self, draft: Path) -> Path | None:
        """Create and lock a draft folder; ``None`` if another process removes it meanwhile."""
        draft.mkdir()
        try:
            lock = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        if _is_locked(lock) and draft.exists():
            self._lock = lock
            return draft
        os.close(lock)
        return None

    def _check_not_ours(self, source: Location) -> None:
        """Check that the file at the target is neither the input nor the result of a node."""
        target = self._target
        reason = ""
        path = local_path(source)
        if path is not None and target.exists() and target.samefile(path):
            reason = "it is the file that is to be exported; name another"
        elif is_result(target.name) and manifest_of(target).exists():
            reason = "it is the result of a node; name another file"
        if reason:
            raise StorageError(str(target), "export to the file", reason)

    def _check_replaceable(self) -> None:
        """Check that a folder at the target holds nothing but an earlier export."""
        if not self._target.is_dir() or (self._target / _MARK).exists():
            return
        names = sorted(os.listdir(self._target))  # noqa: PTH208 - names are all that is needed
        if names:
            more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            reason = (
                f"the folder holds files that no export wrote ({', '.join(names[:_SHOWN])}{more}), "
                "and an export replaces the whole folder; name a folder of its own, or empty it"
            )
            raise StorageError(str(self._target), "export to the folder", reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._draft is not None:
            shutil.rmtree(self._draft, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)


def _names_in(folder: Path) -> set[str]:
    """Return the names of the files of a folder, without the mark."""
    try:
        return {
            os.path.relpath(Path(where) / name, folder)
            for where, _, names in os.walk(folder)
            for name in names
        } - {_MARK}
    except OSError:
        return set()


def _is_unchanged(path: Path, row: Record, written_ns: int) -> bool:
    try:
        status = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return is_unchanged(path, row, status, written_ns)


def _is_locked(descriptor: int) -> bool:
    """Lock a draft; return whether no other process has locked it to remove it."""
    try:
        return lock_at_once(descriptor)
    except OSError:  # a file system without locks
        return True


def _remove_unused(draft: Path) -> None:
    """Remove the draft of a process that has ended."""
    with suppress(FileNotFoundError), unused(draft) as free:
        if free:
            shutil.rmtree(draft, ignore_errors=True)
