"""`Artefact`: a folder that an operator built, such as an index, a vocabulary or a model.

Each version of an artefact has a folder of its own, which is never changed after it was published.
A listing beside the folder has one record for each file: path, size and digest. The digest of the
listing is the digest of the artefact and the name of both::

    index_artefact/5f0c...e1/          the files
    index_artefact/5f0c...e1.jsonl     the listing

The listing is written after the files. A file whose status was changed since then is read again to
compare its content.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import xxhash

from dagster_dataops.errors import InputError, ResultMissingError
from dagster_dataops.foundation.hashing.file_digests import cached_digest, content_digest
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.records import Record, encode

SUFFIX: Final = "_artefact"  # of the folder that holds the versions
_DIGEST: Final = r"[0-9a-f]{32}"
_MAX_LISTED: Final = 3  # differences in an error


@dataclass(frozen=True, slots=True)
class Artefact(os.PathLike[str]):
    """One version of an artefact. Give it, or its path, to an operator as an option.

    Attributes:
        path: The absolute path of its folder. Its files must not be changed.
        digest: The digest of the names and bytes of its files.
        size_bytes: The size of all files.
        files: The number of files.
    """

    path: Path
    digest: str
    size_bytes: int
    files: int

    @classmethod
    def at(cls, path: Path) -> "Artefact":
        """Return the version at ``path``.

        Raises:
            ResultMissingError: It is not there, or its files were changed.
        """
        with held([path]):
            rows = _listed(path)
        files = [row for row in rows if row["digest"]]
        return cls(path, path.name, sum(int(str(row["size_bytes"])) for row in files), len(files))

    def listing(self) -> list[Record]:
        """Return a record for each file and each empty folder: path, size and digest."""
        return _listed(self.path)

    @override
    def __fspath__(self) -> str:
        return str(self.path)


def listing_of(version: Path) -> Path:
    """Return the path of the listing of a version."""
    return version.with_name(f"{version.name}.jsonl")


def is_version_name(name: str) -> bool:
    """Return whether a name is that of a version: a digest."""
    return re.fullmatch(_DIGEST, name) is not None


def is_version(path: object) -> bool:
    """Return whether ``path`` is the path of a version of an artefact, also of a missing one."""
    if not isinstance(path, Path) or re.fullmatch(_DIGEST, path.name) is None:
        return False
    return path.parent.name.endswith(SUFFIX) or listing_of(path).exists()


def list_files(folder: Path) -> list[Record]:
    """Return the listing of a folder: a record for each file and each empty folder, by path.

    The path of an empty folder ends with a slash, and its digest is empty.

    Raises:
        ValueError: An entry is neither a regular file nor a folder, or its name is not UTF-8.
        InputError: A file cannot be read.
        OSError: A folder cannot be read.
    """
    return [
        {"path": name, "size_bytes": 0, "digest": ""}
        if name.endswith("/")
        else {
            "path": name,
            "size_bytes": status.st_size,
            "digest": content_digest(folder / name),
        }
        for name, status in sorted(_entries(folder))
    ]


def digest_of_listing(rows: Iterable[Record]) -> str:
    """Return the digest of a listing, which is the name of its version."""
    return xxhash.xxh3_128_hexdigest(b"".join(map(encode, rows)))


def damage(version: Path) -> str:
    """Return how a version differs from its listing, in words; empty for an intact version."""
    try:
        rows = _listed(version)
        written_ns = listing_of(version).stat().st_ctime_ns
        if digest_of_listing(rows) != version.name:
            return "the listing of its files was changed after it was published"
        present = dict(_entries(version))
    except FileNotFoundError:
        return "the folder or the listing of its files does not exist"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"it cannot be read, or was changed: {error}"
    known = {str(row["path"]): row for row in rows}
    wrong = [f"{name} is missing" for name in known if name not in present]
    wrong += [f"{name} was added" for name in present if name not in known]
    wrong += [
        f"{name} was changed"
        for name, row in known.items()
        if name in present and not is_unchanged(version / name, row, present[name], written_ns)
    ]
    more = len(wrong) - _MAX_LISTED
    listed = ", ".join(wrong[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")
    return f"its files were changed after it was published: {listed}" if wrong else ""


def path_form(path: "os.PathLike[str]") -> dict[str, str] | None:
    """Return the form of a version's path in digests: its content counts, and not its place.

    Returns:
        The form; ``None`` for a path that is not that of a version.
    """
    if not isinstance(path, Path) or not is_version(path):
        return None
    if not damage(path):
        return {"artefact": path.name}
    with suppress(OSError, ValueError, InputError):
        return {"artefact": digest_of_listing(list_files(path))}
    return {"artefact": "unreadable"}


@contextmanager
def held(versions: Sequence[Path]) -> Iterator[None]:
    """Keep versions from being removed inside the block.

    Raises:
        ResultMissingError: A version is missing or was changed.
    """
    with ExitStack() as stack:
        for version in versions:
            stack.enter_context(_shared(version))
            reason = damage(version)
            if reason:
                raise ResultMissingError(str(version), reason)
        yield


@contextmanager
def _shared(version: Path) -> Iterator[None]:
    try:
        descriptor = os.open(version, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # reported by `damage`
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for workers that were forked meanwhile
        os.close(descriptor)


def _listed(version: Path) -> list[Record]:
    lines = listing_of(version).read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]


def _entries(folder: Path, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield the relative path and status of all files and empty folders."""
    with os.scandir(folder) as scan:
        entries = list(scan)
    for entry in entries:
        name = f"{prefix}{entry.name}"
        try:
            name.encode()
        except UnicodeEncodeError:
            msg = f"the name {name!r} is not UTF-8"
            raise ValueError(msg) from None
        if entry.is_dir(follow_symlinks=False):
            inner = list(_entries(Path(entry.path), f"{name}/"))
            yield from inner or [(f"{name}/", entry.stat(follow_symlinks=False))]
        elif entry.is_file(follow_symlinks=False):
            yield name, entry.stat(follow_symlinks=False)
        else:
            msg = f"{name!r} is a link or a special file; an artefact has files and folders only"
            raise ValueError(msg)


def is_unchanged(path: Path, row: Record, status: os.stat_result, written_ns: int) -> bool:
    """Return whether a file, or empty folder, is as its row in a listing.

    It is read only if it may have changed since ``written_ns``, when the listing was written.
    """
    if not row["digest"]:
        return True
    if status.st_size != row["size_bytes"]:
        return False
    if status.st_ctime_ns < written_ns:
        return True
    try:
        return cached_digest(path, FileState.of(status)) == row["digest"]
    except InputError:
        return False
