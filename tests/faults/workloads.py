"""The workloads of campaigns: inputs, the outcome of each record, and the expected result."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import orjson

Row = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """A kind of input.

    Attributes:
        records: The number of records.
        seconds: The possible durations of a record, equally likely.
        slow_every: Every n-th record takes one of these; the others take no time.
        bad_every: Every n-th record fails.
        differing: Whether the result of a record differs from call to call.
    """

    records: int
    seconds: tuple[float, ...] = (0.0,)
    slow_every: int = 1
    bad_every: int = 11
    differing: bool = False

    def rows(self, chance: random.Random, scale: float = 1.0) -> list[Row]:
        """Return an input, smaller by a factor; texts repeat, for a deduplication."""
        count = max(50, int(self.records * scale))
        distinct = max(2, count // 2)
        return [
            {
                "n": n,
                "text": f"text {chance.randrange(distinct)} é",
                "seconds": chance.choice(self.seconds) if n % self.slow_every == 0 else 0,
                "bad": n % self.bad_every == self.bad_every // 2,
            }
            for n in range(count)
        ]

    @property
    def longest(self) -> float:
        """Return the duration of the slowest record."""
        return max(self.seconds)


WORKLOADS: Final = {
    "slow": Workload(150, (0.0, 0.002, 0.002, 0.01, 0.1)),
    "quick": Workload(100_000, bad_every=30_011),
    "huge": Workload(200_000, bad_every=1_000_003),
    "uneven": Workload(60_000, (0.05, 0.3), slow_every=15_000, bad_every=20_011),
    "flaky": Workload(60_000, (0.05,), slow_every=10_000, bad_every=20_011, differing=True),
    "few": Workload(4_000, (0.0, 0.005), slow_every=7, bad_every=101),
}


def become(row: Row) -> list[Row]:
    """Return the result of a record: itself, nothing or two records."""
    if row["bad"]:
        msg = f"bad {row['n']}"
        raise ValueError(msg)
    return [{"n": row["n"], "text": row["text"][::-1]}] * ((row["n"] * 7 // 3) % 3)


def become_random(row: Row) -> list[Row]:
    """Return up to three rows that hold their number, and differ in size from call to call."""
    if row["bad"]:
        msg = f"bad {row['n']}"
        raise ValueError(msg)
    count = random.randrange(4)
    token = random.randrange(1 << random.randrange(8, 60))
    return [{"n": row["n"], "part": part, "of": count, "token": token} for part in range(count)]


def expected(rows: Iterable[Row]) -> bytes:
    """Return the result of `become`."""
    return b"".join(
        orjson.dumps(new) + b"\n" for row in rows if not row["bad"] for new in become(row)
    )


def expected_unique(rows: Iterable[Row]) -> bytes:
    """Return the first record of each text, of those that do not fail."""
    seen: set[str] = set()
    kept = []
    for row in rows:
        if not row["bad"] and row["text"] not in seen:
            seen.add(row["text"])
            kept.append(orjson.dumps(row) + b"\n")
    return b"".join(kept)


def torn(result: bytes, rows: list[Row]) -> Iterator[str]:
    """Yield the faults of a result of `become_random`: each record whole, all in order."""
    found = [orjson.loads(line) for line in result.splitlines()]
    last = -1
    for n, group in groupby(found, key=lambda row: row["n"]):
        parts = list(group)
        if n <= last or rows[n]["bad"]:
            yield f"record {n} after {last}"
        last = n
        if [part["part"] for part in parts] != list(range(parts[0]["of"])):
            yield f"record {n} is not whole: {parts}"
        if len({part["token"] for part in parts}) != 1:
            yield f"record {n} is mixed of two calls: {parts}"
