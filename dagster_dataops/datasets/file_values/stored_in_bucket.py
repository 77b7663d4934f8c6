"""`FilesOfBucket`: the files below a root in a bucket that operators made.

A bucket has no locks. A run of another machine is known by the journal of its node: if the last
entry publishes no result and is younger than the grace period, the run may be at work.
"""

import re
import socket
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.datasets.file_values.file_keeper import FILES
from dagster_dataops.datasets.file_values.pruning_mark import PruningMark
from dagster_dataops.datasets.file_values.stored_files import (
    BLOCK_BYTES,
    StoredFile,
    StoredFiles,
    digests_in,
    is_name_of_content,
    text_blocks,
)
from dagster_dataops.datasets.file_values.stored_in_folder import check_unlocked
from dagster_dataops.datasets.published_files import HISTORY, MANIFEST
from dagster_dataops.errors import ConfigurationError, FolderLockedError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    CopiedFile,
    LocalFile,
    StoreBucket,
)
from dagster_dataops.foundation.places.open_stores import reading, writing
from dagster_dataops.foundation.places.opening import is_compressed
from dagster_dataops.foundation.places.result_store import (
    ConflictError,
    ListedObject,
    ResultStore,
    Status,
    Version,
)
from dagster_dataops.foundation.places.root import Root

_ENTRY: Final = re.compile(r"(.*)/\.journal/([0-9]{8,})")
_KEPT: Final = re.compile(rf".*/{re.escape(HISTORY)}/[0-9]+\.json")  # heads of kept versions
_OUTPUTS: Final = ".journal/data"  # a record may be in two objects, one after the other
_READERS: Final = 8
_AT_ONCE: Final = 1000  # objects of a request
_CLOCK: Final = ".clock-"  # an object whose time is that of the store


class FilesOfBucket(StoredFiles):
    """The files below a root in a bucket. What a single object names can be asked for, too."""

    def __init__(self, root: Root, bucket: StoreBucket) -> None:
        self._root, self._bucket = root, bucket
        self._prefix = bucket.key_of(root.path)

    @cached_property
    def _store(self) -> ResultStore:
        return reading(self._bucket)

    def _listed(self) -> dict[str, ListedObject]:
        return self._store.listed(self._prefix)

    def _name(self, key: str) -> str:
        """Return the name of an object below the root."""
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    @override
    def check_root(self) -> None:
        if not self._listed():
            raise ConfigurationError("ROOT", str(self._root), "a root with objects below it")

    @override
    def check_unused(self, grace_seconds: float) -> None:
        check_unlocked(self._root.path)
        since = time.time() - grace_seconds
        for node, key in _last_entries(self._listed(), since):
            content = self._store.read(key)
            holder = _holder(content[0] if content else b"")
            if holder is not None and not self._is_dead(node, holder):
                run = (
                    f"a run on {holder or 'another machine'}, whose last entry {key} is younger "
                    "than the grace period; if it has ended, set --days to a time that is longer "
                    "than a run takes, and shorter than that since the entry"
                )
                raise FolderLockedError(f"{self._bucket.url}/{node}", run, 0.0)

    def _is_dead(self, node: str, host: str) -> bool:
        """Return whether a run was one of this machine, which has released its working copy."""
        return host == socket.gethostname() and Path(self._bucket.folder, node, ".lock").exists()

    @override
    def state(self) -> dict[str, Status]:
        return {key: entry.status for key, entry in self._others().items()}

    def _others(self) -> dict[str, ListedObject]:
        return {
            key: entry
            for key, entry in self._listed().items()
            if not is_name_of_content(self._name(key))
        }

    @override
    def named(self) -> set[str]:
        state = self.state()
        if not state:
            status = self._store.status(self._prefix) if self._prefix else None
            state = {} if status is None else {self._prefix: status}
        groups: dict[str, list[str]] = defaultdict(list)
        for key in sorted(state):
            folder = key.rpartition("/")[0]
            groups[folder if folder.endswith(_OUTPUTS) else key].append(key)
        with ThreadPoolExecutor(_READERS) as pool:
            named = pool.map(
                lambda keys: digests_in(self._blocks((key, state[key]) for key in keys)),
                groups.values(),
            )
            return set().union(*named)

    @override
    def formatted(self) -> Iterator[tuple[bytes, LocalFile]]:
        for key in self.state():
            is_formatted = key.endswith(MANIFEST) or _KEPT.fullmatch(key) or _ENTRY.fullmatch(key)
            if is_formatted and (content := self._store.read(key)) is not None:
                yield content[0], CopiedFile(self._bucket, self._bucket.folder / key)

    def _blocks(self, objects: Iterable[tuple[str, Status]]) -> Iterator[bytes]:
        for key, (size, version) in objects:
            if is_compressed(key):
                yield from text_blocks(BucketFile(self._bucket, key))
                continue
            for start in range(0, size, BLOCK_BYTES):
                yield self._read(key, start, min(BLOCK_BYTES, size - start), version)

    def _read(self, key: str, start: int, size: int, version: Version) -> bytes:
        try:
            return self._store.read_range(key, start, size, version)
        except ConflictError:
            run = "a run that has changed results meanwhile"
            raise FolderLockedError(str(self._root), run, 0.0) from None

    @override
    def stored_before(self, grace_seconds: float) -> Iterator[StoredFile]:
        yield from self._stored(self._listed(), time.time() - grace_seconds)

    def _stored(self, objects: dict[str, ListedObject], before: float) -> Iterator[StoredFile]:
        for key, entry in sorted(objects.items()):
            if is_name_of_content(self._name(key)) and entry.modified < before:
                yield StoredFile(self._name(key), entry.status.size)

    @override
    def deleted(self, files: list[StoredFile], grace_seconds: float) -> list[StoredFile]:
        store = writing(self._bucket, self._key(FILES))
        mark = PruningMark(str(self._root), self._key(FILES), store)
        shelves: dict[str, list[StoredFile]] = defaultdict(list)
        for file in files:
            shelves[file.name.rpartition("/")[0]].append(file)
        deleted: list[StoredFile] = []
        for shelf, of_shelf in shelves.items():
            with mark.deleting() as deletion:
                old = self._old(store, shelf, grace_seconds)
                gone = [file for file in of_shelf if file in old]
                for at in range(0, len(gone), _AT_ONCE):
                    deletion.check()
                    store.remove(self._key(file.name) for file in gone[at : at + _AT_ONCE])
            deleted += gone
        return deleted

    def _old(self, store: ResultStore, shelf: str, grace_seconds: float) -> set[StoredFile]:
        """Return the files of a folder that are older than the grace period, by their store."""
        clock = self._key(f"{shelf}/{_CLOCK}{uuid.uuid4().hex}")
        store.put(clock, b"")
        try:
            listed = store.listed(self._key(shelf))
        finally:
            store.remove([clock])
        return set(self._stored(listed, listed[clock].modified - grace_seconds))


def _last_entries(objects: dict[str, ListedObject], since: float) -> Iterator[tuple[str, str]]:
    """Yield the key of a node, and of the last entry of its journal, if it is younger."""
    last: dict[str, tuple[int, str]] = {}
    for key in objects:
        match = _ENTRY.fullmatch(key)
        if match is not None:
            last[match[1]] = max(last.get(match[1], (0, "")), (int(match[2]), key))
    for node, (_, key) in sorted(last.items()):
        if objects[key].modified >= since:
            yield node, key


def _holder(entry: bytes) -> str | None:
    """Return the host of the run of an entry, perhaps empty; ``None`` if it publishes a result."""
    try:
        head = orjson.loads(entry.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(head, dict):
        return ""
    return None if head.get("kind") == "commit" else str(head.get("host", ""))
