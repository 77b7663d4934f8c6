"""Cut a run of bytes of a tar archive into samples: adjacent files with the same key."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from dagster_dataops.errors import DuplicateKeyError, IndexOutdatedError, StreamSourceError
from dagster_dataops.streams.core.sequences import fresh
from dagster_dataops.training.filestores.sample_names import NO_PREFIX, split_name
from dagster_dataops.training.filestores.source_info import new_sample
from dagster_dataops.training.filestores.tars.tar_headers import (
    BLOCK,
    HeaderReader,
    PlacedFile,
    padded,
    plain_files,
)


@dataclass(frozen=True, slots=True)
class ShardIdentity:
    """The values that all samples of a shard share.

    Attributes:
        dataset: The path of the dataset.
        shard: The name of the shard, relative to the dataset.
        path: The path or URL of the shard.
        copy_subflavors: Returns a copy of the subflavors for each sample.
        parts: The parts to keep; ``None`` for all.
        duplicates: ``error``, or which of two parts with one name to keep: ``first`` or ``last``.
        trusted: Whether the checksums of the headers were compared when the shard was indexed, and
            the shard did not change since.
    """

    dataset: str
    shard: str
    path: str
    copy_subflavors: Callable[[], dict[str, Any]] = dict
    parts: frozenset[str] | None = None
    duplicates: str = "error"
    trusted: bool = False

    def sample(self, key: str, index: int) -> tuple[dict[str, Any], list[str]]:
        """Return a sample without parts, and its list of file names."""
        names: list[str] = []
        subflavors = self.copy_subflavors()
        return new_sample(self.dataset, self.shard, key, index, names, subflavors), names

    def add(self, opened: "OpenSample", part: str, name: str, data: bytes) -> None:
        """Add a part to a sample."""
        sample, names = opened
        if self.parts is not None and part not in self.parts:
            return
        if part in sample:
            if self.duplicates == "error" or part.startswith("__"):
                raise DuplicateKeyError(self.dataset, name, self.shard, self.shard)
            if self.duplicates == "first":
                return
        else:
            names.append(name)
        sample[part] = data


OpenSample = tuple[dict[str, Any], list[str]]


def copier(subflavors: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Return a function that copies subflavors; containers inside are copied, too."""
    if all(type(value) not in {dict, list, tuple} for value in subflavors.values()):
        return subflavors.copy
    return lambda: fresh(subflavors)


class NeedsMoreError(Exception):
    """The bytes end within a header."""


class CutSamples(NamedTuple):
    """The complete samples of some bytes.

    Attributes:
        samples: The samples.
        starts: The first byte of each, then the first byte behind the last one.
        is_last: Whether the archive ends behind them.
    """

    samples: list[dict[str, Any]]
    starts: list[int]
    is_last: bool


class SampleCutter:
    """Cuts bytes of one shard into samples."""

    def __init__(self, identity: ShardIdentity) -> None:
        self.identity = identity
        self._data = b""
        self._base = 0
        self._at, self._is_last = 0, False  # the next header in the bytes, and whether none follows
        self._headers = HeaderReader(identity.path, self._read)

    def cut(self, data: bytes, base: int, first: int) -> CutSamples:
        """Return the samples that are complete in ``data``.

        Args:
            data: Bytes of the shard, from the start of a sample on.
            base: The offset of the first byte in the shard.
            first: The number of the first sample in the dataset.

        Raises:
            DuplicateKeyError: A sample has a part twice.
            StreamSourceError: A header is damaged.
            UncommonTarError: Only tarfile can read the archive.
        """
        samples, starts = self._begin(data, base)
        try:
            self._fill(first, samples, starts)
        except StreamSourceError:
            if len(samples) <= 1:
                raise  # otherwise it is raised again behind the complete samples
        if self._is_last or not samples:
            starts.append(base + self._at)
        else:
            samples.pop()  # more parts of it may follow
        return CutSamples(samples, starts, self._is_last)

    def cut_one(self, data: bytes, base: int, number: int) -> dict[str, Any]:
        """Return the sample that begins and ends with ``data``; the arguments are those of `cut`.

        Raises:
            DuplicateKeyError: The sample has a part twice.
            IndexOutdatedError: There is not exactly one sample, or a header is damaged.
            UncommonTarError: Only tarfile can read the archive.
        """
        samples, starts = self._begin(data, base)
        path = self.identity.path
        try:
            self._fill(number, samples, starts)
        except DuplicateKeyError:
            raise
        except StreamSourceError as error:
            raise IndexOutdatedError(path, str(error)) from error
        if starts != [base]:
            raise IndexOutdatedError(path, f"there is no sample at byte {base:,}")
        return samples[0]

    def _begin(self, data: bytes, base: int) -> tuple[list[dict[str, Any]], list[int]]:
        """Begin with other bytes, and no samples and starts."""
        self._data, self._base = data, base
        self._at, self._is_last = 0, False
        return [], []

    def _fill(self, first: int, samples: list[dict[str, Any]], starts: list[int]) -> None:
        """Add samples and their starts; the last sample may be incomplete."""
        identity, data, base = self.identity, self._data, self._base
        end = base + len(data)
        keeps_all, prefix = identity.parts is None, ""
        alike = NO_PREFIX  # the beginning of the names of this sample
        sample: dict[str, Any] = {}
        names: list[str] = []
        for name, begin, offset, size in chain.from_iterable(self._files()):
            part = name[len(prefix) :]
            if not name.startswith(alike) or "/" in part:
                divided = split_name(name)
                if divided is None:
                    continue
                key, part = divided
                if key + "." != prefix:
                    prefix = key + "."
                    alike = NO_PREFIX if key.startswith("_") else prefix
                    starts.append(begin)
                    sample, names = identity.sample(key, first + len(samples))
                    samples.append(sample)
            if offset + size > end:
                return  # the sample is complete in a later block
            content = data[offset - base : offset - base + size]
            if keeps_all and part not in sample:
                sample[part] = content
                names.append(name)
            else:
                identity.add((sample, names), part, name, content)

    def _files(self) -> Iterator[list[PlacedFile]]:
        """Yield the files whose headers are complete, some at once; note where the next one begins.

        The content of the last file may be incomplete.
        """
        data, base = self._data, self._base
        while self._at + BLOCK <= len(data):
            plain = plain_files(data, self._at, base)
            if plain:
                _, _, offset, size = plain[-1]
                self._at = offset + padded(size) - base
                yield plain
                continue
            try:
                member = self._headers.member(base + self._at)
            except NeedsMoreError:
                return
            if member is None:
                self._is_last = True
                return
            begin, self._at = base + self._at, member.end - base
            if member.is_file:
                yield [(member.name, begin, member.offset, member.size)]

    def _read(self, size: int, offset: int) -> bytes:
        place = offset - self._base
        if place + size > len(self._data):
            raise NeedsMoreError
        return self._data[place : place + size]
