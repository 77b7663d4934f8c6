"""Comparison of the results of contenders."""

import filecmp
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import orjson

from benchmarks.measuring import Run


class WrongOutputError(Exception):
    """The result of a contender differs from that of the ideal."""


def same_bytes(runs: Mapping[str, Run]) -> None:
    """Check that results equal those of the first contender byte by byte.

    Raises:
        WrongOutputError: Results differ; the error names the contenders.
    """
    names = list(runs)
    expected = runs[names[0]].outputs
    for name in names[1:]:
        found = runs[name].outputs
        pairs = list(zip(expected[-len(found) :], found, strict=True))
        for right, other in pairs:
            if not filecmp.cmp(right, other, shallow=False):
                msg = f"{other} of {name!r} differs from {right} of {names[0]!r}"
                raise WrongOutputError(msg)


def verdict(expected: Path, found: list[Path]) -> str:
    """Compare the records of ``found`` with those of ``expected``, in words."""
    if len(found) == 1 and filecmp.cmp(expected, found[0], shallow=False):
        return "same bytes"
    right, other = list(_records([expected])), list(_records(found))
    if right == other:
        return "same records"
    missing = (Counter(right) - Counter(other)).total()
    if not missing and len(right) == len(other):
        return "same records, not in order"
    return f"{missing:,} of {len(right):,} records differ or are missing"


def _records(paths: list[Path]) -> Iterator[bytes]:
    """Yield a digest of each record; the order and spelling of its fields do not matter."""
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                plain = orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS)
                yield blake2b(plain, digest_size=12).digest()
