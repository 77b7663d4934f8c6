"""Positions: where a stream stood when so many of its items were safe on disk.

They are frames of a checkpoint's journal. Each tells how much of the segment the items before it
take and a digest of that, so that a position stands for itself: whatever else is torn or damaged,
it counts if the segment begins with the very bytes it was taken behind.
"""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.checkpoints.journal import FrameKind, frame, json_frame, read_frames
from dagster_dataops.datasets.files import COPY_BYTES, storage

_HEAD: Final = struct.Struct("<QQ16s")
_STAGES: Final = "stages"

StageParts = Sequence[Mapping[str, str]]


class Position(NamedTuple):
    """Where a stream stood.

    Attributes:
        items: Items before it.
        size: Bytes that they take.
        digest: Of these bytes.
        state: What the stream goes on from, as JSON, less what it consists of.
    """

    items: int
    size: int
    digest: bytes
    state: bytes

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
    items, size, digest, state = position
    return frame(FrameKind.POSITION, _HEAD.pack(items, size, digest) + state)


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
            items, size, digest = _HEAD.unpack_from(payload)
            positions.append(Position(items, size, digest, payload[_HEAD.size :]))
    return Known(stages, positions)


def intact(positions: Iterable[Position], segment: Path) -> list[Position]:
    """Return the positions that the segment bears out, the furthest first.

    The segment is read once, up to where the first of them is found not to fit.
    """
    found: list[Position] = []
    digest, at = xxhash.xxh3_128(), 0
    if not segment.exists():
        return found
    with storage(segment, "read back"), segment.open("rb") as file:
        for position in sorted(positions, key=lambda one: one.size):
            while at < position.size:
                block = file.read(min(COPY_BYTES, position.size - at))
                if not block:
                    return found[::-1]
                digest.update(block)
                at += len(block)
            if digest.digest() == position.digest:
                found.append(position)
    return found[::-1]
