"""Find the parts of records, such as sentences or lines, that occurred before in the set."""

import base64
import marshal
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import xxhash

from dagster_dataops.library.sorting.first_seen import (
    first_of_equals,
    firsts_in,
    in_order,
    partitions_of,
    split_digests,
    unpacked,
)

_DIGEST_BYTES: Final = 16
_NEVER_REPEATED: Final = bytes(_DIGEST_BYTES)


def pack_parts(parts: Iterable[str]) -> str:
    """Return the digests of the parts of a record as text; a blank part never is a repeat."""
    return pack_digests(
        xxhash.xxh3_128_digest(part.encode("utf-8", "surrogatepass"))
        if part.strip()
        else _NEVER_REPEATED
        for part in parts
    )


def pack_digests(digests: Iterable[bytes]) -> str:
    """Return digests of 16 bytes, which are evenly distributed, as text."""
    return base64.b64encode(b"".join(digests)).decode()


def repeated_parts(packed: Iterator[str], scratch: Path, max_bytes: int) -> Iterator[list[int]]:
    """Yield for each record the numbers of its parts that occurred before, also in itself.

    Args:
        packed: What `pack_parts` or `pack_digests` returned for each record.
        scratch: An empty folder for spilled data: 24 bytes per part.
        max_bytes: The approximate memory limit, without 4 bytes per record and one bit per part.
    """
    counts = array("I")  # the parts of each record that was read
    record = part = 0
    repeats: list[int] = []
    for first in first_of_equals(_digests(packed, counts), scratch, max_bytes):
        while not counts[record]:
            yield []
            record += 1
        if not first:
            repeats.append(part)
        part += 1
        if part == counts[record]:
            yield repeats
            record, part, repeats = record + 1, 0, []
    yield from ([] for _ in counts[record:])


def _digests(packed: Iterator[str], counts: "array[int]") -> Iterator[bytes]:
    blank = 0
    for text in packed:
        digests = base64.b64decode(text)
        counts.append(len(digests) // _DIGEST_BYTES)
        for start in range(0, len(digests), _DIGEST_BYTES):
            digest = digests[start : start + _DIGEST_BYTES]
            if digest == _NEVER_REPEATED:
                blank += 1
                digest = xxhash.xxh3_128_digest(blank.to_bytes(8), seed=1)
            yield digest


class RepeatedParts:
    """Finds the repeated parts of records in partitions of their digests; a `Partitioning`.

    Args:
        max_bytes: The memory of all processes together.
        verdict: Returns the verdict of a record for the numbers of its repeated parts.
    """

    def __init__(self, max_bytes: int, verdict: Callable[[list[int]], Any]) -> None:
        self.max_bytes, self._verdict = max_bytes, verdict

    def partitions(self, sketch_bytes: int, memory: int) -> int:
        """Return the number of partitions."""
        return partitions_of(sketch_bytes // _DIGEST_BYTES, memory)

    def split(self, sketches: Iterator[str], partitions: int) -> tuple[list[bytes], bytes]:
        """Return the digests of each partition, and what `verdicts` needs of the range."""
        counts, joined = array("I"), bytearray()
        for packed in sketches:
            digests = base64.b64decode(packed)
            counts.append(len(digests) // _DIGEST_BYTES)
            joined += digests
        every = bytes(joined)
        numbered = enumerate(unpacked(every))
        blank = (number for number, digest in numbered if digest == _NEVER_REPEATED)
        parts, order = split_digests(every, partitions)
        return parts, marshal.dumps((counts, order, array("I", blank)))

    def decide(self, parts: Sequence[bytes], scratch: Path, memory: int) -> Iterable[bytes]:  # noqa: ARG002
        """Return for each part of a record, of each range, whether it is the first of its value."""
        return firsts_in(parts, memory)

    def verdicts(self, decided: Sequence[bytes], rest: bytes) -> Iterator[Any]:
        """Yield the verdict of each record."""
        counts, order, blank = marshal.loads(rest)  # noqa: S302 - our own file
        firsts = bytearray(in_order(decided, order))
        for number in array("I", blank):
            firsts[number] = 1
        start = 0
        for size in array("I", counts):
            marks = firsts[start : start + size]
            yield self._verdict([place for place, first in enumerate(marks) if not first])
            start += size
