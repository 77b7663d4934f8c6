"""Near-duplicates among many short documents: recall by similarity, CPU, memory, and peers."""

import bisect
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run, ours
from benchmarks.workloads.deduplicating import pairs_of
from benchmarks.workloads.memory import MEGABYTE

_SINGLES_EACH = 18
_LIMITS = [0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]  # of the bins
_FEWEST = 30  # pairs of a bin that counts
_LIMIT_SECONDS = 3600.0


class Found(NamedTuple):
    """What a tool has found.

    Attributes:
        run: Its run.
        recalls: The recall in each bin, from 0.5 on.
        distance: Largest distance of a recall from what the shape of the default promises.
        recall: Of the pairs from 0.8 on.
        f1: At 0.8.
    """

    run: Run
    recalls: list[float]
    distance: float
    recall: float
    f1: float

    @property
    def note(self) -> str:
        """The facts in words."""
        bins = " ".join(f"{recall:.2f}".removeprefix("0") for recall in self.recalls)
        return (
            f"{self.run.cpu_seconds:.1f} CPU s, {self.run.peak_bytes / MEGABYTE:.0f} MB, "
            f"recall {self.recall:.3f} and F1 {self.f1:.3f} at 0.8, recall from 0.5 on {bins}"
        )


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the quality and the cost of near-duplicates, then of the peers' ones."""
    pairs = bench.size(10_000, 1_000)
    records = corpus.similar_pairs(pairs, _SINGLES_EACH)
    source = bench.source(f"pairs{pairs}x{_SINGLES_EACH}", records)
    documents = f"{pairs * (_SINGLES_EACH + 2):,} documents"
    usual = found_by(bench, source, _ours(source))
    # The recall of few pairs is far from its mean by chance.
    distance = 0.04 if bench.full else 0.1
    yield _figure(f"recall from the formula's, {documents}", usual.distance, "", usual, distance)
    megabytes = usual.run.peak_bytes / MEGABYTE
    yield _figure(f"memory, {documents}", megabytes, "MB", usual, None)
    verified = found_by(bench, source, _ours(source, verify=True))
    yield Figure("near", "F1 at 0.8, verified", verified.f1, "F1", 0.99, note=verified.note)
    wide = found_by(bench, source, _ours(source, bands=25, rows=10))
    for peer, same, goal in (
        ("rensa", usual, None),
        ("datatrove", usual, 5),
        ("datajuicer", wide, 5),
    ):
        yield against_peer(bench, source, peer, same, goal)


def _figure(name: str, value: float, unit: str, found: Found, most: float | None) -> Figure:
    return Figure("near", name, value, unit, most=most, note=found.note)


def _ours(source: Path, **options: Any) -> Contender:
    node = ("dedup.NearDuplicate", {**options, "_max_workers": 1, "_concurrency_mode": "single"})
    contender: Contender = ours(source, node, memory=True)
    return contender


def found_by(bench: Bench, source: Path, contender: Contender) -> Found:
    """Run a tool and return what it has found."""
    kept: dict[int, tuple[float, int]] = {}

    def read(runs: Mapping[str, Run]) -> None:
        for path in runs["tool"].outputs:
            kept.update(pairs_of(path))  # the results are deleted
        if len(kept) < sum(1 for _ in pairs_of(source)):
            msg = f"{contender.module} removed both documents of a pair"
            raise ContenderError(msg)

    run = bench.in_turn({"tool": contender}, read, rounds=1)["tool"][0]
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for pair, (jaccard, _) in pairs_of(source):
        result = jaccard, kept[pair][1] < 2
        bins[bisect.bisect(_LIMITS, jaccard)].append(result)
    recalls = [mean(found for _, found in bins[at]) for at in sorted(bins) if at]
    distances = [
        abs(mean(found - promised(jaccard) for jaccard, found in each))
        for each in bins.values()
        if len(each) >= _FEWEST
    ]
    every = [one for each in bins.values() for one in each]
    removed = sum(found for _, found in every)
    right = sum(found for jaccard, found in every if jaccard >= 0.8)
    similar = sum(jaccard >= 0.8 for jaccard, _ in every)
    return Found(
        run, recalls, max(distances, default=0.0), right / similar, 2 * right / (removed + similar)
    )


def promised(jaccard: float, bands: int = 14, rows: int = 8) -> float:
    """Return the probability with which two documents agree in a band."""
    return float(1 - (1 - jaccard**rows) ** bands)


def against_peer(bench: Bench, source: Path, peer: str, same: Found, goal: float | None) -> Figure:
    """Return the ratio of a peer's CPU seconds to ours with the same, or a similar, shape."""
    what = f"CPU of {peer} over ours"
    python = Path(sys.executable)  # rensa is in the extra of the operator
    if peer != "rensa":
        python = (bench.peers or Path()) / peer / "bin" / "python"
        if bench.peers is None or not python.exists():
            return Figure("near", what, math.nan, "x", note="not installed")
    contender = Contender(
        f"benchmarks.peers.{peer}_near",
        {"source": str(source)},
        str(python),
        memory=True,
        limit=_LIMIT_SECONDS,
    )
    try:
        found = found_by(bench, source, contender)
    except ContenderError as error:
        reason = " ".join(str(error).split())[-120:]
        return Figure("near", what, math.nan, "x", note=f"failed: {reason}")
    value = found.run.cpu_seconds / same.run.cpu_seconds
    return Figure("near", what, value, "x", goal, note=found.note)
