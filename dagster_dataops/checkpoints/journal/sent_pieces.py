"""`Piece`: bytes of a file of a checkpoint. `SentObject`: an object that holds pieces.

Heads and agents send outputs in the same form: the pieces of files, one after the other.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from dagster_dataops.checkpoints.journal.segments import MOST_UNSENT_BYTES
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.places.bucket import BucketFile, StoreBucket, facts_of_location
from dagster_dataops.foundation.places.range_source import read_range

PUBLISHED: Final = "published"  # in the place of the name of an object: see `SentObject`
STEP_BYTES: Final = 32 << 20  # outputs in one object
_LEAST_ROOM_BYTES: Final = 4 << 20  # of a worker: spans are written at this size
_LOOK_SECONDS: Final = 0.02
_KEEP_SIZE_AND_FREE: Final = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE


class Piece(NamedTuple):
    """Bytes of a file of a checkpoint."""

    name: str
    start: int
    end: int


class SentObject(NamedTuple):
    """An object with outputs.

    Attributes:
        name: The last part of its key; `PUBLISHED` for the published result of the node.
        pieces: What it holds, one after the other.
        digest: That of the published result.
    """

    name: str
    pieces: list[Piece]
    digest: str = ""


class SentPlace(NamedTuple):
    """Where agents put the outputs of a run.

    Attributes:
        bucket: The bucket.
        folder: The key of the folder of the objects.
        mark: How their names begin. No other attempt uses it.
        claim: The key of an object that the run has created.
        parts: How the keys of files of parts begin, in each attempt until the next publication.
    """

    bucket: StoreBucket
    folder: str
    mark: str
    claim: str
    parts: str = ""


def facts_of_place(place: SentPlace | None) -> tuple[Any, ...]:
    """Return the argument of `place_of_facts` for another process of the run."""
    if place is None:
        return ()
    folder, bucket = facts_of_location(BucketFile(place.bucket, place.folder))
    return folder, bucket, place.mark, place.claim


def place_of_facts(facts: tuple[Any, ...]) -> SentPlace | None:
    """Return where to put outputs; ``None`` if there are no facts."""
    if not facts:
        return None
    folder, (url, copies, options), mark, claim = facts
    return SentPlace(StoreBucket(url, Path(copies), options, reached=True), folder, mark, claim)


def in_steps(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Return pieces in groups that fit in memory; at least one, perhaps empty, group."""
    steps: list[list[Piece]] = [[]]
    size = 0
    for name, start, end in pieces:
        at = start
        while at < end:
            cut = min(end, at + STEP_BYTES - size)
            steps[-1].append(Piece(name, at, cut))
            size += cut - at
            at = cut
            if size == STEP_BYTES:
                steps.append([])
                size = 0
    return steps


def read_back(folder: Path, pieces: Iterable[Piece]) -> Iterator[bytes]:
    """Yield the bytes of pieces.

    Raises:
        StorageError: A file is shorter than what was written to it.
    """
    for name, start, end in pieces:
        path = folder / name
        with storage(path, "read back"), path.open("rb") as file:
            data = read_range(file.fileno(), start, end - start)
        if len(data) < end - start:
            raise StorageError(str(path), "read back", "it is shorter than what was written to it")
        yield data


def room_of_worker(workers: int) -> int:
    """Return how many bytes of each of the worker processes of a machine may be unsent."""
    return max(MOST_UNSENT_BYTES // workers, _LEAST_ROOM_BYTES)


def note_sent(path: Path, end: int) -> None:
    """Note up to which byte a file was sent, for the process that writes it; see `await_room`.

    Raises:
        StorageError: The disk refuses.
    """
    with storage(path, "note what was sent"):
        descriptor = os.open(_note_of(path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.pwrite(descriptor, end.to_bytes(8, "little"), 0)
        finally:
            os.close(descriptor)


def await_room(path: Path, end: int, size: int, most: int, given_up: Callable[[], bool]) -> None:
    """Wait until a file may grow, because so little of it is not sent.

    Args:
        path: The file.
        end: Its size.
        size: By how much it is to grow. If nothing is unsent, it may grow by any size.
        most: How many of its bytes may be unsent then.
        given_up: Return whether to wait no longer.
    """
    sent = 0
    while sent < end and end + size - sent > most and not given_up():
        with suppress(FileNotFoundError):  # nothing was sent yet
            sent = int.from_bytes(_note_of(path).read_bytes(), "little")
        if sent < end and end + size - sent > most:
            time.sleep(_LOOK_SECONDS)


def _note_of(path: Path) -> Path:
    return path.with_suffix(".sent")


def freed(path: Path, start: int, end: int) -> bool:
    """Free the space of bytes of a file; return ``False`` if that cannot or must not be done.

    A segment may be linked to a published result, which must stay whole.
    """
    import ctypes  # only for buckets

    try:
        system = ctypes.CDLL(None)
        allocate: Any = getattr(system, "fallocate64", None) or system.fallocate
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except (AttributeError, OSError):
        return False
    try:
        if os.fstat(descriptor).st_nlink > 1:
            return False
        offset, length = ctypes.c_int64(start), ctypes.c_int64(end - start)
        return bool(allocate(descriptor, _KEEP_SIZE_AND_FREE, offset, length) == 0)
    finally:
        os.close(descriptor)
