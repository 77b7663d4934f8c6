"""`PublishedObjects`: the published files of a node in a bucket.

The head of a node is its manifest with the keys of its files. Files have keys of their own for
every publication, and the head is replaced on condition that it is the one that was there when the
run began. So a publication is one request, and a reader finds the old files or the new ones.

Others may write to the bucket. So the names in a head are refused unless they stay in the node's
folder; see `checked_head`.
"""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.checkpoints.journal.journal_reader import (
    PARTS_MARK,
    check_not_newer,
    noted_format,
    with_mark,
    without_mark,
)
from dagster_dataops.checkpoints.places.head_check import checked_head, node_of
from dagster_dataops.checkpoints.places.kept_heads import KeptHeads, objects_of
from dagster_dataops.checkpoints.places.uploaded_draft import is_large, uploading
from dagster_dataops.datasets.durable_files import make_folder, storage, write_durably
from dagster_dataops.datasets.fetched_file import fetch
from dagster_dataops.datasets.parted_result import link_parts, remove_parts
from dagster_dataops.datasets.published_files import MANIFEST, RESULT, parts_of, result_name
from dagster_dataops.datasets.writer import linked
from dagster_dataops.errors import LostError, ResultMissingError
from dagster_dataops.foundation.concurrency.file_lock import locked_file
from dagster_dataops.foundation.places.bucket import (
    VERSIONS,
    BucketFile,
    Location,
    StoreBucket,
    local_path,
)
from dagster_dataops.foundation.places.joined_object import is_list, readable
from dagster_dataops.foundation.places.open_stores import reading, writing
from dagster_dataops.foundation.places.opening import COMPRESSED, FORMS
from dagster_dataops.foundation.places.result_store import ConflictError, ResultStore, Version

HEAD_ENDING: Final = "_home.json"  # of files that only working copies have
LOCK_ENDING: Final = "_home.lock"
_HOME: Final = "home"  # in the head: what is not part of the manifest
_TRIES: Final = 5


class NodeHead(NamedTuple):
    """The head of a node.

    Attributes:
        content: The manifest, and under ``home`` the files and the number of the publication.
        version: Its version on the store.
    """

    content: dict[str, Any]
    version: Version

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Key, size and modification time of each file, by its path in the node's folder."""
        return dict(self.content.get(_HOME, {}).get("files", {}))

    @property
    def commit(self) -> int:
        """The number of the publication in the journal."""
        return int(self.content.get(_HOME, {}).get("commit", 0))

    @property
    def is_one_file(self) -> bool:
        """Whether the result is one file of records, perhaps in parts of objects."""
        return not any(map(self.content.get, ("outputs", "artefact", "parted")))

    def manifest(self) -> bytes:
        """Return the manifest."""
        content = {name: value for name, value in self.content.items() if name != _HOME}
        return _dumped(content)


class PublishedObjects:
    """The published files of a node in a bucket; its folder is a working copy of them."""

    def __init__(self, bucket: StoreBucket, folder: Path, name: str) -> None:
        self.bucket = bucket
        self.key = bucket.key_of(folder)
        self.folder = folder
        self.name = name

    @cached_property
    def store(self) -> ResultStore:
        """The store of the bucket, for reading: no right to write is needed.

        Raises:
            StoreRefusedError: It cannot be reached.
        """
        return reading(self.bucket)

    @cached_property
    def writable(self) -> ResultStore:
        """The store of the bucket, for writing. The first use in a process checks it.

        Raises:
            StoreRefusedError: It cannot be reached, lacks a feature that results need, or refuses
                a right.
        """
        return writing(self.bucket, self.key)

    @property
    def _head_key(self) -> str:
        return f"{self.key}/{self.name}{MANIFEST}"

    @property
    def _mirrored(self) -> Path:
        """The file with the head of the working copy."""
        return self.folder / f".{self.name}{HEAD_ENDING}"

    def url(self, path: Path) -> str:
        """Return the URL of the object that a published file of the working copy is of."""
        file = self.known_file(path)
        return f"{self.bucket.url}/{file['key'] if file else self._head_key}"

    def known_file(self, path: Path) -> dict[str, Any] | None:
        """Return an entry of `NodeHead.files`, of the head that the working copy was made from."""
        known = self._known() if path.is_relative_to(self.folder) else None
        return known.files.get(path.relative_to(self.folder).as_posix()) if known else None

    def object_of(self, path: Path) -> BucketFile | None:
        """Return the object that a file of the working copy has the content of, if it is one."""
        file = self.known_file(path)
        return BucketFile(self.bucket, file["key"]) if file and _is_there(path, file) else None

    def head(self) -> NodeHead | None:
        """Return the head; ``None`` if nothing was published.

        Raises:
            PathEscapeError: It names files outside the folder of the node.
            ResultMissingError: It is damaged.
        """
        entry = self.store.read(self._head_key)
        if entry is None:
            return None
        content = None  # damaged
        with suppress(orjson.JSONDecodeError):
            content = orjson.loads(entry[0])
        place = f"{self.store.url}/{self._head_key}"
        return NodeHead(without_mark(checked_head(content, self.key, place), PARTS_MARK), entry[1])

    def is_published(self) -> bool:
        """Return whether the node has a head."""
        return self.store.status(self._head_key) is not None

    def head_to_fetch(self) -> NodeHead | None:
        """Return the head if the working copy lacks its files; else ``None``.

        Raises:
            StorageError: The store cannot be read.
        """
        if not self._mirrored.exists():  # then no folder is made for the lock
            return self.head()
        with self.locked():
            return None if self._is_current(self._known()) else self.head()

    def _is_current(self, known: NodeHead | None, *, whole: bool = True) -> bool:
        """Return whether the working copy holds the published files, as for `fetch`."""
        if known is None:
            return False
        status = self.store.status(self._head_key)
        current = status is not None and known.version == status.version
        return current and self._intact(known, whole=whole)

    def fetch(self, *, whole: bool = True) -> NodeHead | None:
        """Make the working copy hold the published files; return their head.

        Args:
            whole: Whether it must hold a result that is large, too.

        Raises:
            StorageError: The store cannot be read.
        """
        for _ in range(_TRIES):
            with self.locked():
                known = self._known()
                if self._is_current(known, whole=whole):
                    self._mirrored.touch()  # it was used, see `working_copies`
                    return known
                head = self.head()
                if head is None:
                    self._forget()
                    return None
                if "part_of" in head.content and _HOME not in head.content:
                    break
                with suppress(ResultMissingError):  # replaced in the meantime
                    self._fetch_files(head, whole=whole)
                    return head
        else:
            head = None
        if head is None:
            reason = "files of the published result are missing in the store"
            raise ResultMissingError(f"{self.store.url}/{self._head_key}", reason)
        place = f"{self.store.url}/{self._head_key}"
        node = node_of(head.content["part_of"], self.folder, self.key, place)
        name = node.name.removesuffix(MANIFEST)
        return PublishedObjects(self.bucket, node.parent, name).fetch()

    def _intact(self, head: NodeHead, *, whole: bool) -> bool:
        left = None if whole else self._left_in_bucket(head)
        return (self.folder / f"{self.name}{MANIFEST}").exists() and all(
            _is_there(path, file) or (name == left and not os.path.lexists(path))
            for name, file in head.files.items()
            for path in (self.folder / name,)
        )

    def _left_in_bucket(self, head: NodeHead) -> str | None:
        """Return the name of a result that runs need no copy of; ``None`` if they do."""
        names = (result_name(self.name, form) for form in FORMS)
        name = next((name for name in names if name in head.files), "")
        large = is_large(head.files.get(name, {}).get("size", 0))
        return name if head.is_one_file and large else None

    def link_copy(self, name: str, path: Path) -> bool:
        """Link the copy of a published file to ``path``; return ``False`` if there is none here."""
        copy = self.folder / name
        return self.object_of(copy) is not None and linked(copy, path)

    def _fetch_files(self, head: NodeHead, *, whole: bool) -> None:
        left = None if whole else self._left_in_bucket(head)
        known = self._known()
        before = known.files if known else {}
        for name, file in head.files.items():
            path = self.folder / name
            if not file["key"]:
                make_folder(path)
                continue
            if before.get(name) != file or not _is_there(path, file):
                if name == left:
                    _removed(path)
                    continue
                fetch(readable(self.store, file["key"]), file["key"], path)
                with storage(path, "set the modification time"):
                    os.utime(path, ns=(file["modified_ns"], file["modified_ns"]))
        for name in before.keys() - head.files.keys():
            _removed(self.folder / name)
        manifest = self.folder / f"{self.name}{MANIFEST}"
        make_folder(manifest.parent)
        for place, version in _parted(head.content, self.folder, self.name):
            _link_parts(place, version)
        write_durably(manifest, head.manifest())
        self.remember(head)

    def _forget(self) -> None:
        """Delete the local files of a result that was deleted from the store."""
        known = self._known()
        if known is not None:
            for name in (*known.files, f"{self.name}{MANIFEST}", self._mirrored.name):
                _removed(self.folder / name)

    def _known(self) -> NodeHead | None:
        """Return the head of the working copy."""
        try:
            content, version = orjson.loads(self._mirrored.read_bytes())
            content = checked_head(content, self.key, self._mirrored)
            return NodeHead(content, Version(*version))
        except (OSError, ValueError, TypeError, ResultMissingError):
            return None

    def remember(self, head: NodeHead) -> None:
        """Store ``head`` as the version of the working copy."""
        write_durably(self._mirrored, orjson.dumps([head.content, list(head.version)]))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes of this machine from changing the published files."""
        path = self.folder / f".{self.name}{LOCK_ENDING}"
        make_folder(self.folder)
        with storage(path, "lock the file"), locked_file(path):
            yield

    def upload(self, files: Mapping[Path, Path], place: str) -> dict[str, dict[str, Any]]:
        """Store files; return `NodeHead.files`.

        Args:
            files: For each file of the working copy the file with its next content. A file that
                maps to itself is not sent again if it was not changed; it may be missing.
            place: A name that no other publication of this node uses.
        """
        known = self._known()
        before = known.files if known else {}
        entries = {}
        for target, source in files.items():
            name = target.relative_to(self.folder).as_posix()
            if target == source and name in before and _is_same(target, before[name]):
                entries[name] = before[name]
                continue
            status = source.stat()
            key = self.version_key(place, target)
            if source.is_dir():
                entries[name] = {"key": "", "size": 0, "modified_ns": 0}
                continue
            self.writable.upload(key, source)
            size, modified_ns = status.st_size, status.st_mtime_ns
            entries[name] = {"key": key, "size": size, "modified_ns": modified_ns}
        return entries

    def version_key(self, place: str, path: Path) -> str:
        """Return the key of a published file.

        Args:
            place: A name that no other publication of this node uses.
            path: Of the file in the working copy.
        """
        return f"{self.key}/{VERSIONS}/{place}/{path.relative_to(self.folder).as_posix()}"

    def remove_stale(self, head: NodeHead) -> None:
        """Delete the copy of a result that is not the published one, which is in the bucket."""
        name = self._left_in_bucket(head)
        if name is not None and not _is_there(self.folder / name, head.files[name]):
            _removed(self.folder / name)

    def keep(self, folder: Path) -> None:
        """Store the files below a folder of the working copy under their own names, if new.

        Raises:
            StorageError: The store cannot be reached.
        """
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{self.key}/{path.relative_to(self.folder).as_posix()}"
                status = self.store.status(key)
                if status is None or status.size != path.stat().st_size:
                    self.writable.upload(key, path)

    def replace_head(
        self, manifest: bytes, files: Mapping[str, Any], commit: int, seen: NodeHead | None
    ) -> NodeHead:
        """Publish files that were stored.

        Args:
            manifest: The manifest.
            files: As `NodeHead.files`.
            commit: The number of the publication in the journal.
            seen: The head that is replaced.

        Raises:
            LostError: Another run has published since.
        """
        content = {**orjson.loads(manifest), _HOME: {"commit": commit, "files": dict(files)}}
        before = None if seen is None else seen.version
        try:
            version = self.writable.replace(self._head_key, _dumped(_with_mark(content)), before)
        except ConflictError:
            raise self._lost("publish the result") from None
        head = NodeHead(content, version)
        for name in files:
            if "/" in name and name.endswith(MANIFEST):  # of a named output
                folder = name.rpartition("/")[0]
                up = os.path.relpath(f"{self.name}{MANIFEST}", folder)
                self.writable.put(f"{self.key}/{name}", orjson.dumps({"part_of": up}))
        return head

    def check_head(self, seen: NodeHead | None) -> None:
        """Check that the head is still the one that was seen.

        Raises:
            LostError: Another run has published since.
        """
        status = self.store.status(self._head_key)
        if (status and status.version) != (seen and seen.version):
            raise self._lost("go on")

    def _lost(self, action: str) -> LostError:
        reason = "another run has published a result since this run began"
        return LostError(f"{self.store.url}/{self._head_key}", action, reason)

    def publish(self, files: Mapping[Path, Location], manifest: bytes) -> None:
        """Publish files that no checkpoint belongs to; of two publications the last one counts.

        Args:
            files: As for `upload`; they are in place.
            manifest: The manifest, which is in place too.
        """
        with self.locked():
            paths = {path: Path(str(local_path(file))) for path, file in files.items()}
            stored = self.upload(paths, f"w-{uuid.uuid4().hex[:12]}")
            for last in range(_TRIES):
                seen = self.head()
                try:
                    head = self.replace_head(manifest, stored, seen.commit if seen else 0, seen)
                except LostError:
                    if last == _TRIES - 1:
                        raise
                    continue
                self.remember(head)
                self.remove_replaced(seen, self.objects_in_use(head), 0)
                return

    def make_whole(self) -> int:
        """Write published results that are in parts as one object each, and publish these.

        A run that works on the node meanwhile ends with a `LostError`, and can be resumed.

        Returns:
            Their size in bytes; 0 if none is in parts.

        Raises:
            LostError: A run has published meanwhile.
            NewerVersionError: A newer version has published them.
            ResultMissingError: There is no result, or it is not what its manifest says.
            StorageError: The store cannot be reached.
        """
        with self.locked():
            seen, known = self.head(), self._known()
            if seen is None:
                raise ResultMissingError(f"{self.store.url}/{self._head_key}", "nothing is there")
            made_from = without_mark(seen.content, COMPRESSED).get("made_from")
            check_not_newer(noted_format(made_from), f"{self.store.url}/{self._head_key}")
            place = f"w-{uuid.uuid4().hex[:12]}"
            lists = {name: file for name, file in seen.files.items() if is_list(file["key"])}
            whole = {
                name: {**file, "key": self.version_key(place, self.folder / name)}
                for name, file in lists.items()
            }
            for name, file in lists.items():
                self._join(file["key"], whole[name]["key"], seen.content.get("fingerprint"))
            if lists:
                files = {**seen.files, **whole}
                head = self.replace_head(seen.manifest(), files, seen.commit, seen)
                if known is not None and known.version == seen.version:
                    self.remember(head)
                self.remove_replaced(seen, self.objects_in_use(head), 0)
            return sum(file["size"] for file in lists.values())

    def _join(self, key: str, target: str, fingerprint: object) -> None:
        """Write the text of a list of parts to an object."""
        joined = readable(self.store, key)
        status = joined.status(key)
        if status is None:
            raise ResultMissingError(f"{self.store.url}/{key}", "the store has no such object")
        digest = xxhash.xxh3_128()
        with uploading(self.writable, target, status.size) as upload:
            for block in joined.read_on(key, 0, status.size, status.version):
                digest.update(block)
                upload.write(block)
            if f"xxh3:{digest.hexdigest()}" != fingerprint:
                reason = "its parts have other bytes than were published; make it again"
                raise ResultMissingError(f"{self.store.url}/{key}", reason)

    def objects_of(self, head: NodeHead) -> set[str]:
        """Return the keys of the objects of the files of a head, with those of their parts.

        Raises:
            StorageError: A list of parts cannot be read.
        """
        return objects_of(self.store, head.files)

    def objects_in_use(self, head: NodeHead | None) -> set[str]:
        """Return the keys of the objects of the present head and of the heads that are kept.

        Ask it before objects of published files are deleted.

        Args:
            head: The present head; ``None`` if there is none, for example because it was deleted.

        Raises:
            StorageError: The store cannot be reached.
        """
        present = set() if head is None else self.objects_of(head)
        return present | KeptHeads(self.store, self.key).keys()

    def nodes(self) -> list[str]:
        """Return the names of the nodes with a result in the folder."""
        names = (key.rpartition("/")[2] for key in self.store.names_in(self.key))
        return [name.removesuffix(MANIFEST) for name in names if name.endswith(MANIFEST)]

    def remove_replaced(self, seen: NodeHead | None, used: set[str], first: int) -> None:
        """Delete the files of the head that was replaced, and of attempts before this one.

        Args:
            seen: The head that was replaced.
            used: The keys of objects that stay, see `objects_in_use`.
            first: The number by which this attempt took the node over; 0 if it did not.
        """
        old = self.objects_of(seen) if seen else set()
        for name in self.store.names(f"{self.key}/{VERSIONS}") if first else ():
            number = name.removeprefix(f"{self.key}/{VERSIONS}/").split("-")[0]
            if number.isdecimal() and int(number) < first:
                old.add(name)
        self.writable.remove(sorted(old - used))


def _is_there(path: Path, file: Mapping[str, Any]) -> bool:
    if not file["key"]:  # an empty folder of an artefact
        return path.is_dir()
    try:
        status = path.stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (file["size"], file["modified_ns"])


def _is_same(path: Path, file: Mapping[str, Any]) -> bool:
    """Return whether a file is as it was published; the copy of a large one may be missing."""
    return _is_there(path, file) or (is_large(file["size"]) and not os.path.lexists(path))


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _dumped(content: Mapping[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _with_mark(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a head; marked if it names lists of parts.

    Earlier versions would read such a list in place of the result.
    """
    if not any(is_list(file["key"]) for file in content[_HOME]["files"].values()):
        return content
    return {**content, "made_from": with_mark(content.get("made_from") or {}, PARTS_MARK)}


def _parted(content: Mapping[str, Any], folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield each result of a manifest, and the version of its parts; empty for one file."""
    outputs = content.get("outputs") or {"": content}
    for facts in outputs.values():
        place = Path(os.path.normpath(folder / facts.get("folder", ".")))
        result = f"{facts.get('name', name)}{RESULT}"
        yield place / result, facts.get("parted", "")


def _link_parts(result: Path, version: str) -> None:
    """Make the link to the parts of a result, which are there; a result in one file has none."""
    parts = parts_of(result)
    with storage(result, "link it to its parts"):
        if version:
            link_parts(result, parts / version)
        else:
            remove_parts(parts)
