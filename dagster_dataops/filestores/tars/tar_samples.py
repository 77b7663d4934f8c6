"""Cut a run of bytes of a tar archive into samples: adjacent files with the same key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import adler32

from dagster_dataops.errors import DuplicateKeyError, StreamSourceError
from dagster_dataops.filestores.sample_names import NO_PREFIX, split_name
from dagster_dataops.filestores.source_info import SOURCES, SourceInfo
from dagster_dataops.filestores.tars.tar_headers import (
    BLOCK,
    CHECKSUMS,
    REST,
    HeaderReader,
    Member,
    plain_rest,
    unpack_header,
)
from dagster_dataops.streams.core.sequences import fresh


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
        source = SourceInfo(
            dataset_path=self.dataset, index=index, shard_name=self.shard, file_names=names
        )
        sample = {
            "__key__": key,
            "__restore_key__": [self.dataset, self.shard, key],
            "__shard__": self.shard,
            SOURCES: [source],
            "__subflavors__": self.copy_subflavors(),
        }
        return sample, names

    def add(self, opened: "OpenSample", part: str, name: str, data: bytes) -> None:
        """Add a part to a sample.

        Raises:
            DuplicateKeyError: The sample has a part of that name.
        """
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
    """Cuts bytes of one shard into samples.

    Args:
        identity: The shard.
    """

    def __init__(self, identity: ShardIdentity) -> None:
        self.identity = identity
        self._data = b""
        self._base = 0
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
        self._data, self._base = data, base
        samples: list[dict[str, Any]] = []
        starts: list[int] = []
        try:
            at, is_last = self._fill(data, first, samples, starts)
        except StreamSourceError:
            if len(samples) <= 1:
                raise
            at, is_last = 0, False  # the error is raised again behind the complete samples
        if is_last:
            starts.append(base + at)
        elif samples:
            samples.pop()  # more parts of it may follow
        else:
            starts.append(base + at)
        return CutSamples(samples, starts, is_last)

    def cut_one(self, data: bytes, base: int, number: int) -> list[dict[str, Any]]:
        """Return the sample that begins and ends with ``data``; several if there are more.

        Arguments and errors as `cut`.
        """
        self._data, self._base = data, base
        samples: list[dict[str, Any]] = []
        starts: list[int] = []
        self._fill(data, number, samples, starts)
        return samples if starts and starts[0] == base else []

    def _fill(  # noqa: C901, PLR0915, PLR0912 - the loop over all files, in one function for speed
        self, data: bytes, first: int, samples: list[dict[str, Any]], starts: list[int]
    ) -> tuple[int, bool]:
        """Add samples and their starts.

        Returns:
            The place in ``data`` of the first header that was not used, and whether the archive
            ends there.
        """
        identity, base, last = self.identity, self._base, len(data) - BLOCK
        dataset, shard, subflavors = identity.dataset, identity.shard, identity.copy_subflavors
        checksums, unpack = CHECKSUMS, unpack_header
        keeps_all, prefix = identity.parts is None, ""
        alike = NO_PREFIX  # what names of the same sample begin with
        trusted = identity.trusted
        sample: dict[str, Any] = {}
        names: list[str] = []
        rest, other = b"", -1
        at = size = 0
        while at <= last:
            begin = at
            name = ""
            text, digits, behind, checksum = unpack(data, at)
            found = data[at + REST : at + BLOCK]
            if found != rest:
                rest, other = found, plain_rest(found)
            if (  # as plain_files does it
                other >= 0
                and not behind & 0xDF
                and (
                    trusted
                    or (adler32(data[at : at + REST]) & 0xFFFF) + other == checksums[checksum]
                )
            ):
                text = text.rstrip(b"\0")
                try:
                    size, name = int(digits, 8), text.decode()
                except ValueError:
                    name = ""
            if name and size >= 0 and "\0" not in name:
                offset = at + BLOCK
                at = offset + (size + 511 & -512)
            else:
                try:
                    member = self._headers.member(base + at)
                except NeedsMoreError:
                    return begin, False
                if member is None:
                    return begin, True
                name, offset, size, at = self._placed(member)
                if not member.is_file:
                    continue
            part = name[len(prefix) :]
            if not name.startswith(alike) or "/" in part:
                divided = split_name(name)
                if divided is None:
                    continue
                key, part = divided
                if key + "." != prefix:
                    prefix = key + "."
                    alike = NO_PREFIX if key.startswith("_") else prefix
                    starts.append(base + begin)
                    names = []
                    source = {
                        "dataset_path": dataset,
                        "index": first + len(samples),
                        "shard_name": shard,
                        "file_names": names,
                    }
                    sample = {
                        "__key__": key,
                        "__restore_key__": [dataset, shard, key],
                        "__shard__": shard,
                        SOURCES: [SourceInfo(source)],
                        "__subflavors__": subflavors(),
                    }
                    samples.append(sample)
            if offset + size > last + BLOCK:
                return begin, False  # the sample is complete in a later block
            if keeps_all and part not in sample:
                sample[part] = data[offset : offset + size]
                names.append(name)
            else:
                identity.add((sample, names), part, name, data[offset : offset + size])
        return at, False

    def _placed(self, member: Member) -> tuple[str, int, int, int]:
        return member.name, member.offset - self._base, member.size, member.end - self._base

    def _read(self, size: int, offset: int) -> bytes:
        place = offset - self._base
        if place + size > len(self._data):
            raise NeedsMoreError
        return self._data[place : place + size]
