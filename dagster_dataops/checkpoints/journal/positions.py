"""Positions: where a stream can continue, and how many of its items are on disk by then.

A position is an entry of the journal. It holds the sizes and digests of two files at that moment:
the segment with the items, and the quarantine file with the failed items. It counts if both files
still begin with these bytes, even if other parts are damaged.
"""

import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.datasets.durable_files import COPY_BYTES, storage

_HEAD: Final = struct.Struct("<QQ16sQ16s")
_STAGES: Final = "stages"

StageParts = Sequence[Mapping[str, str]]


class Extent(NamedTuple):
    """The beginning of a file: its size in bytes and its digest."""

    size: int
    digest: bytes


NOTHING: Final = Extent(0, xxhash.xxh3_128().digest())


class Position(NamedTuple):
    """A position at which a stream can continue.

    Attributes:
        items: Number of items before the position.
        size: Size of these items in the segment, in bytes.
        digest: Digest of these bytes.
        state: The state of the stream as JSON, without its stages.
        quarantined: The part of the quarantine file with the failed items before the position.
    """

    items: int
    size: int
    digest: bytes
    state: bytes
    quarantined: Extent = NOTHING

    def state_of(self, stages: StageParts) -> dict[str, Any]:
        """Return the state that the stream loads."""
        return {**json.loads(self.state), _STAGES: [dict(parts) for parts in stages]}


def without_stages(state: Mapping[str, Any]) -> bytes:
    """Return a state as JSON without the stages, which the journal stores once."""
    rest = {name: value for name, value in state.items() if name != _STAGES}
    try:
        return orjson.dumps(rest)
    except TypeError:  # texts with lone surrogates, integers beyond 64 bits
        return json.dumps(rest).encode()


def pack_position(position: Position) -> bytes:
    """Return a position as bytes."""
    items, size, digest, state, quarantined = position
    return _HEAD.pack(items, size, digest, *quarantined) + state


def unpack_position(data: bytes) -> Position | None:
    """Return a packed position; ``None`` if ``data`` is too short."""
    if len(data) < _HEAD.size:
        return None
    items, size, digest, *quarantined = _HEAD.unpack_from(data)
    return Position(items, size, digest, data[_HEAD.size :], Extent(*quarantined))


def intact(positions: Iterable[Position], segment: Path, quarantine: Path) -> list[Position]:
    """Return the positions whose bytes both files still contain, the furthest position first."""
    by_size = sorted(positions, key=lambda position: position.size)
    items = confirmed(segment, {Extent(position.size, position.digest) for position in by_size})
    failures = confirmed(quarantine, {position.quarantined for position in by_size})
    return [
        position
        for position in reversed(by_size)
        if Extent(position.size, position.digest) in items and position.quarantined in failures
    ]


def confirmed(path: Path, extents: Iterable[Extent]) -> set[Extent]:
    """Return those of the extents with which a file begins. A missing file is empty.

    The file is read once, up to the end of the longest extent.
    """
    intact_extents: set[Extent] = set()
    digest, at = xxhash.xxh3_128(), 0
    with storage(path, "read back"), _opened(path) as file:
        for extent in sorted(extents):
            while at < extent.size:
                block = file.read(min(COPY_BYTES, extent.size - at))
                if not block:
                    return intact_extents
                digest.update(block)
                at += len(block)
            if digest.digest() == extent.digest:
                intact_extents.add(extent)
    return intact_extents


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb") if path.exists() else io.BytesIO()
