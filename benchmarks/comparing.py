"""Whether contenders wrote the same."""

import filecmp
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import orjson

from benchmarks.measuring import Run


class WrongOutputError(Exception):
    """A contender wrote something else than the ideal."""


def same_bytes(runs: Mapping[str, Run]) -> None:
    """Refuse results that differ in a byte from the first contender's.

    Raises:
        WrongOutputError: It says who wrote what.
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
    """Say in words how the records of ``found`` stand to those of ``expected``."""
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
    """Yield a digest of each record, whatever the order and spelling of its fields."""
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                plain = orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS)
                yield blake2b(plain, digest_size=12).digest()
