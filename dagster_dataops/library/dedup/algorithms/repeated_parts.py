"""Find the parts of records, such as sentences or lines, that occurred before in the set."""

import base64
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import xxhash

from dagster_dataops.library.sorting.first_seen import first_of_equals

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
