"""Read the entries of a journal that `JournalWriter` wrote, of this version or an earlier one."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from dagster_dataops.checkpoints.journal.frames import (
    ABOUT_SPANS,
    FORMAT,
    MAGIC,
    NUMBER,
    FrameKind,
    read_frames,
    read_reopened,
    read_spans,
)
from dagster_dataops.checkpoints.journal.positions import Position, unpack_position
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, SpansEntry
from dagster_dataops.datasets.durable_files import read_if_there, storage
from dagster_dataops.errors import NewerVersionError, StorageError

# A format that begins with its number, or one of any number with features that are not known.
_NUMBERED: Final = r"0*([0-9]+)"
_WITH_MORE: Final = r"(?s)[0-9]+-[a-z]+ with .+"
_MAGIC: Final = r"(?s)DOJ."  # see `format_of`
_DIGITS: Final = 9  # of a number that is compared; all longer ones are newer
_HEAD_BYTES: Final = 1 << 20  # of a journal; its first frame is that of its first attempt
PARTS_MARK: Final = "parts"  # see `with_mark`: of a head in a bucket that names lists of parts


class AttemptEntry(NamedTuple):
    """The attempts so far and the fingerprint of the latest, as JSON; ``None`` if malformed."""

    content: dict[str, Any] | None


class StagesEntry(NamedTuple):
    """The stages of a stream."""

    stages: list[dict[str, str]]


_Before: TypeAlias = dict[int, bytes]  # payloads of the frames about the spans that follow
Entry: TypeAlias = AttemptEntry | SpansEntry | ReopenedEntry | StagesEntry | Position


def read_journal(path: Path) -> Iterator[Entry]:
    """Yield the entries of a journal in order; damaged ones are left out, a missing file has none.

    Each attempt is followed by entries in the format that it names; those of a format that this
    version does not read are left out. A kept journal has one attempt, as its last entry.

    Raises:
        StorageError: The file cannot be read.
    """
    data = read_if_there(path, "read the journal")
    read = _reader_of(_first_format(data))
    before: _Before = {}
    for frame in read_frames(data):
        if frame.kind in ABOUT_SPANS:
            before[frame.kind] = frame.payload
            continue
        if frame.kind == FrameKind.ATTEMPT:
            content = _object(frame.payload)
            read = _reader_of(format_in(content))
            yield AttemptEntry(content)
        elif (entry := read(*frame, before)) is not None:
            yield entry
        before = {}


def _read_6(kind: int, payload: bytes, before: _Before) -> Entry | None:
    """Return the entry of a frame as versions from 0.2.0 on write it."""
    if kind == FrameKind.SPANS:
        digests, notes = before.get(FrameKind.DIGESTS, b""), before.get(FrameKind.NOTES, b"")
        return read_spans(payload, digests, notes)
    if kind == FrameKind.REOPENED:
        return read_reopened(payload)
    if kind == FrameKind.STAGES:
        stages = (_object(payload) or {}).get("stages")
        return StagesEntry(stages) if isinstance(stages, list) else None
    return unpack_position(payload) if kind == FrameKind.POSITION else None


def _read_nothing(_kind: int, _payload: bytes, _before: _Before) -> None:
    """Return no entry: the format is not known."""
    return


_FrameReader: TypeAlias = Callable[[int, bytes, _Before], Entry | None]
READERS: Final[dict[str, _FrameReader]] = {f"6-{sys.byteorder}": _read_6}
"""The reader of the frames of each format since version 0.2.0. The last one is written."""


def _reader_of(format_: str) -> _FrameReader:
    return READERS.get(format_, _read_nothing) if format_ else _read_6


def is_read(format_: str) -> bool:
    """Return whether this version reads a format."""
    return format_ in READERS


def with_mark(made_from: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """Return a fingerprint in a manifest whose format says that the manifest has a feature.

    Earlier versions, which do not read the feature, refuse the format.

    Args:
        made_from: The fingerprint; that of a source is empty.
        mark: The feature.
    """
    return {**made_from, "format": f"{made_from.get('format') or FORMAT} with {mark}"}


def without_mark(content: dict[str, Any], mark: str) -> dict[str, Any]:
    """Return the content of a manifest as it was before `with_mark` changed its fingerprint."""
    made_from, ending = content.get("made_from"), f" with {mark}"
    if not isinstance(made_from, dict) or not str(made_from.get("format", "")).endswith(ending):
        return content
    before = {**made_from, "format": made_from["format"].removesuffix(ending)}
    if "operator" not in made_from:  # of a source, which has no format
        del before["format"]
    return {**content, "made_from": before}


def is_newer(format_: str) -> bool:
    """Return whether a format is that of a later version of this package."""
    if is_read(format_):
        return False
    if re.fullmatch(_MAGIC, format_) or re.fullmatch(_WITH_MORE, format_):
        return True
    match = re.match(_NUMBERED, format_)
    return match is not None and (len(match[1]) > _DIGITS or int(match[1]) > NUMBER)


def check_not_newer(format_: str, place: object) -> None:
    """Check that a format is not that of a later version of this package.

    Raises:
        NewerVersionError: It is; the error names the place.
    """
    if is_newer(format_):
        raise NewerVersionError(str(place), format_, FORMAT)


def _first_format(data: bytes) -> str:
    """Return the format that the first attempt of a journal names; empty if none does."""
    frames = (frame for frame in read_frames(data) if frame.kind == FrameKind.ATTEMPT)
    return next((noted for frame in frames if (noted := format_in(_object(frame.payload)))), "")


def format_of(path: Path) -> str:
    """Return the format of the journal of a checkpoint; empty if it is missing or unknown.

    Raises:
        StorageError: The file cannot be read.
    """
    try:
        with storage(path, "read the journal"), path.open("rb") as file:
            return format_at_start(file.read(_HEAD_BYTES))
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ""
        raise


def format_at_start(head: bytes) -> str:
    """Return the format of a journal that begins with these bytes; empty if it is unknown."""
    for frame in read_frames(head):
        if frame.kind == FrameKind.ATTEMPT and (noted := format_in(_object(frame.payload))):
            return noted
    other = head.startswith(MAGIC[:3]) and not head.startswith(MAGIC)
    return head[: len(MAGIC)].decode("latin-1") if other else ""


def format_in(attempt: dict[str, Any] | None) -> str:
    """Return the format that an attempt has noted, as text; empty if it has none."""
    return noted_format((attempt or {}).get("fingerprint"))


def noted_format(fingerprint: object) -> str:
    """Return the format that a fingerprint notes, as text; empty for one of no operator."""
    if not isinstance(fingerprint, dict):
        return ""
    return str(fingerprint.get("format", "")) or ("unknown" if "operator" in fingerprint else "")


def _object(payload: bytes) -> dict[str, Any] | None:
    try:
        content = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return content if isinstance(content, dict) else None


class StreamJournal(NamedTuple):
    """The entries of a journal that concern a stream.

    Attributes:
        stages: The stages of the stream; ``None`` if the journal has no such entry.
        positions: The positions, in the order of the journal.
    """

    stages: list[dict[str, str]] | None
    positions: list[Position]


def read_positions(path: Path) -> StreamJournal:
    """Return the stages and positions of a stream; a missing journal has none.

    Raises:
        StorageError: The file cannot be read.
    """
    stages: list[dict[str, str]] | None = None
    positions = []
    for entry in read_journal(path):
        if isinstance(entry, StagesEntry):
            stages = entry.stages
        elif isinstance(entry, Position):
            positions.append(entry)
    return StreamJournal(stages, positions)
