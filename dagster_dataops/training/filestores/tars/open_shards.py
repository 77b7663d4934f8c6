"""Keep shards open, and read parts and samples of them."""

import os
import resource
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import IndexOutdatedError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.remote import RemoteFile, is_url
from dagster_dataops.training.filestores.tars.shard_scan import (
    BY_TARFILE,
    END,
    START,
    PlacedSample,
    TarShard,
)
from dagster_dataops.training.filestores.tars.tar_headers import (
    BLOCK,
    HeaderReader,
    UncommonTarError,
)
from dagster_dataops.training.filestores.tars.tar_samples import SampleCutter, ShardIdentity
from dagster_dataops.training.filestores.tars.uncommon_tars import cut_with_tarfile, entries

_FEW: Final = 64
_MANY: Final = 16_384


def _quarter_of_files() -> int:
    """Return a quarter of the files that the process may open: a blend reads several datasets."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY if most == resource.RLIM_INFINITY else max(_FEW, min(most // 4, _MANY))


MAX_KEPT: Final = _quarter_of_files()  # shards of a dataset that all stay open

SampleReader: TypeAlias = Callable[[PlacedSample, int], dict[str, Any]]
"""Returns a sample by its place and its number in the dataset."""


class OpenShards:
    """Shards that are open for reading, the first of which are closed when there are many.

    Threads and forked processes can share it: local files are read by ``pread``, others by one
    thread at a time.
    """

    def __init__(self) -> None:
        self._open: dict[str, Content] = {}
        self._kept: list[Content] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @override
    def __reduce__(self) -> Any:
        return OpenShards, ()

    def read(self, shard: TarShard, size: int, offset: int) -> bytes:
        """Return bytes of a shard; fewer only at its end.

        Raises:
            StreamSourceError: The shard cannot be read.
        """
        with self._lock:
            path = shard.location.path
            content = self._open.get(path)
            if content is None or self._process != os.getpid():
                content = self._opened(shard)
            data = content.read_at(size, offset)
            if len(data) < size and content.failure is not None:
                raise content.failure
        return data

    def _opened(self, shard: TarShard) -> Content:
        """Open a shard, and close the one that was opened first if there are too many."""
        if self._process != os.getpid():  # a forked process must not share positions
            self._open, self._process = {}, os.getpid()
        content = self._open[shard.location.path] = shard.location.opened()
        while len(self._open) > MAX_KEPT:
            self._open.pop(next(iter(self._open))).close()
        return content

    def part(self, shard: TarShard, at: int, name: str, place: Sequence[int]) -> bytes:
        """Return the content of a file of the sample that begins at byte ``at`` of a shard.

        ``place`` is the offset of its content and its size.

        Raises:
            IndexOutdatedError: Another file is there.
            StreamSourceError: The shard cannot be read.
        """
        offset, size = place
        if size == BY_TARFILE:
            return self._part_by_tarfile(shard, offset, name)
        data = self.read(shard, size + BLOCK, offset - BLOCK)
        is_there = data.startswith(name.encode("utf-8", "surrogateescape") + b"\0")
        if not is_there or data[124:135] != b"%011o" % size or len(data) < size + BLOCK:
            self._check_slowly(shard, at, name, offset, size)
        return data[BLOCK:]

    def check_part(self, shard: TarShard, at: int, name: str, offset: int, size: int) -> None:
        """Check by its header that a file is where the index has it; for the arguments see `part`.

        Raises:
            IndexOutdatedError: Another file is there.
            StreamSourceError: The shard cannot be read.
        """
        location = shard.location
        if is_url(location.path) and location.compression is None:  # its content may not be read
            file = RemoteFile(location.path, location.storage_options, ahead=False)
            file.seek(offset - BLOCK)
            head = file.read(BLOCK)
            file.close()
        else:
            head = self.read(shard, BLOCK, offset - BLOCK)
        is_there = head.startswith(name.encode("utf-8", "surrogateescape") + b"\0")
        if not is_there or head[124:135] != b"%011o" % size:
            self._check_slowly(shard, at, name, offset, size)

    def _check_slowly(self, shard: TarShard, at: int, name: str, offset: int, size: int) -> None:
        """Check the name of a file that has further headers."""
        path = shard.location.path
        headers = HeaderReader(path, lambda count, start: self.read(shard, count, start))
        try:
            while at < offset and (member := headers.member(at)) is not None:
                if (member.name, member.offset, member.size) == (name, offset, size):
                    last = self.read(shard, 1, offset + size - 1) if size else b"\0"
                    if last:
                        return
                    break
                at = member.end
        except (StreamSourceError, UncommonTarError):
            pass
        raise IndexOutdatedError(path, f"there is no {name!r} at byte {offset:,}")

    def _part_by_tarfile(self, shard: TarShard, begin: int, name: str) -> bytes:
        path = shard.location.path
        with shard.location.opened() as content:
            for entry in entries(path, content):
                if (entry.begin, entry.name) == (begin, name):
                    return entry.data
        raise IndexOutdatedError(path, f"there is no {name!r} at byte {begin:,}")

    def reader(self, shard: TarShard, identity: ShardIdentity) -> SampleReader:
        """Return a function that reads a sample, if necessary with tarfile.

        Raises:
            IndexOutdatedError: Raised by the function: there is not exactly one sample.
            StreamSourceError: Raised by the function: the shard cannot be read.
        """
        cutter = SampleCutter(identity)

        def read(placed: PlacedSample, number: int) -> dict[str, Any]:
            start, end = placed[START], placed[END]
            if end - start < BLOCK:  # the last sample of an archive that tarfile scanned
                return self._sample_by_tarfile(shard, identity, start, number)
            data = self.read(shard, end - start, start)
            try:
                sample = cutter.cut_one(data, start, number)
            except UncommonTarError:
                return self._sample_by_tarfile(shard, identity, start, number)
            if len(data) < end - start:
                raise IndexOutdatedError(identity.path, f"there is no sample at byte {start:,}")
            return sample

        return read

    def kept(self, shard: TarShard) -> Content:
        """Return a shard that stays open until `close`."""
        content = shard.location.opened()
        self._kept.append(content)
        return content

    def _sample_by_tarfile(
        self, shard: TarShard, identity: ShardIdentity, start: int, number: int
    ) -> dict[str, Any]:
        with shard.location.opened() as content:
            for samples in cut_with_tarfile(identity, content, start, number):
                if samples.starts[0] == start:
                    return samples.samples[0]
                break
        raise IndexOutdatedError(identity.path, f"there is no sample at byte {start:,}")

    def close(self) -> None:
        """Close all shards."""
        with self._lock:
            for content in (*self._open.values(), *self._kept):
                content.close()
            self._open.clear()
            self._kept.clear()
