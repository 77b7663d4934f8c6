"""`JsonlStore`: the lines of a jsonl file by number, as files ``0.json``, ``1.json`` and so on."""

import os
import threading
from collections.abc import Iterator
from typing import Any

from dagster_dataops.errors import IndexOutdatedError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.descriptors import opened_file
from dagster_dataops.streams.files.line_index import LineIndex
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore

SUFFIX = ".json"


class JsonlStore(FileStore):
    """The lines of a local, uncompressed jsonl file. Blank lines are not counted."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._index: LineIndex | None = None
        self._stamp: list[int] | None = None
        self._lock = threading.Lock()

    @override
    def __reduce__(self) -> Any:
        return _reopened, (self.path, self.title)

    @override
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        text = name.removesuffix(SUFFIX)
        starts = self._starts()
        known = name.endswith(SUFFIX) and text.isascii() and text.isdigit()
        if not known or int(text) >= len(starts) - 1:
            raise self.missing(name)
        start, end = starts[int(text)], starts[int(text) + 1]
        with opened_file(self.path) as descriptor:
            data = os.pread(descriptor, end - start, start)
        if Location(self.path).stamp() != self._stamp:
            raise IndexOutdatedError(self.path, "the file has changed")
        shard = self.path.rpartition("/")[2]
        return data.strip(), SourceInfo.of(self.path, name, shard, [name])

    def _starts(self) -> Any:
        with self._lock:
            if self._index is None:
                self._stamp = Location(self.path).stamp()
                with opened_file(self.path) as descriptor:
                    self._index = LineIndex(self.path, descriptor)
            return self._index.starts

    @override
    def names(self) -> Iterator[str]:
        for number in range(len(self._starts()) - 1):
            yield f"{number}{SUFFIX}"

    @override
    def version(self) -> str:
        return digest(Location(self.path).identity())

    @override
    def __len__(self) -> int:
        return len(self._starts()) - 1


def _reopened(path: str, title: str | None) -> JsonlStore:
    store = JsonlStore(path)
    store.title = title
    return store
