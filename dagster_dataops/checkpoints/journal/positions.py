"""Positions: where a stream stood when so many of its items were safe on disk.

They are frames of a checkpoint's journal. Each tells how much of the segment the items before it
take, how much of the quarantine file the failures before it, and the digests of both, so that a
position stands for itself: whatever else is torn or damaged, it counts if both files begin with
the very bytes it was taken behind.
"""

import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.checkpoints.journal.frames import FrameKind, frame, json_frame, read_frames
from dagster_dataops.datasets.durable_files import COPY_BYTES, storage

_HEAD: Final = struct.Struct("<QQ16sQ16s")
_STAGES: Final = "stages"

StageParts = Sequence[Mapping[str, str]]


class Extent(NamedTuple):
    """The beginning of a file: its bytes and the digest of these."""

    size: int
    digest: bytes


NOTHING: Final = Extent(0, xxhash.xxh3_128().digest())


class Position(NamedTuple):
    """Where a stream stood.

    Attributes:
        items: Items before it.
        size: Bytes that they take.
        digest: Of these bytes.
        state: What the stream goes on from, as JSON, less what it consists of.
        quarantined: What of the quarantine file the failures before it take.
    """

    items: int
    size: int
    digest: bytes
    state: bytes
    quarantined: Extent = NOTHING

    def state_of(self, stages: StageParts) -> dict[str, Any]:
        """Return the state as the stream gave it.

        Args:
            stages: What the stream consists of.
        """
        return {**json.loads(self.state), _STAGES: [dict(parts) for parts in stages]}


class Known(NamedTuple):
    """What a journal says of a stream.

    Attributes:
        stages: What the stream consists of; ``None`` if the journal does not say.
        positions: In the order in which they were taken.
    """

    stages: list[dict[str, str]] | None
    positions: list[Position]


def without_stages(state: Mapping[str, Any]) -> bytes:
    """Return a state as JSON, less what the stream consists of: that is journalled once."""
    rest = {name: value for name, value in state.items() if name != _STAGES}
    try:
        return orjson.dumps(rest)
    except TypeError:  # texts with lone surrogates, integers beyond 64 bits
        return json.dumps(rest).encode()


def position_frame(position: Position) -> bytes:
    """Return the frame of a position."""
    items, size, digest, state, quarantined = position
    return frame(FrameKind.POSITION, _HEAD.pack(items, size, digest, *quarantined) + state)


def stages_frame(stages: StageParts) -> bytes:
    """Return the frame, and its copy, of what a stream consists of."""
    return json_frame(FrameKind.STAGES, {_STAGES: [dict(parts) for parts in stages]})


def read_positions(journal: Path) -> Known:
    """Return what a journal says of a stream; a missing one says nothing."""
    stages: list[dict[str, str]] | None = None
    positions = []
    try:
        data = journal.read_bytes()
    except FileNotFoundError:
        return Known(None, [])
    for kind, payload in read_frames(data):
        if kind == FrameKind.STAGES:
            stages = json.loads(payload)[_STAGES]
        elif kind == FrameKind.POSITION and len(payload) >= _HEAD.size:
            items, size, digest, *quarantined = _HEAD.unpack_from(payload)
            state = payload[_HEAD.size :]
            positions.append(Position(items, size, digest, state, Extent(*quarantined)))
    return Known(stages, positions)


def intact(positions: Iterable[Position], segment: Path, quarantine: Path) -> list[Position]:
    """Return the positions that segment and quarantine file bear out, the furthest first."""
    given = sorted(positions, key=lambda one: one.size)
    items = borne_out(segment, {Extent(one.size, one.digest) for one in given})
    failures = borne_out(quarantine, {one.quarantined for one in given})
    return [
        one
        for one in reversed(given)
        if Extent(one.size, one.digest) in items and one.quarantined in failures
    ]


def borne_out(path: Path, extents: Iterable[Extent]) -> set[Extent]:
    """Return the extents that a file begins with; a missing one has no bytes.

    It is read once, up to the end of the longest.
    """
    found: set[Extent] = set()
    digest, at = xxhash.xxh3_128(), 0
    with storage(path, "read back"), _opened(path) as file:
        for extent in sorted(extents):
            while at < extent.size:
                block = file.read(min(COPY_BYTES, extent.size - at))
                if not block:
                    return found
                digest.update(block)
                at += len(block)
            if digest.digest() == extent.digest:
                found.add(extent)
    return found


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb") if path.exists() else io.BytesIO()
