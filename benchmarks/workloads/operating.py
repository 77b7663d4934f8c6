"""Operators of the library: records per CPU second of one process, against plain code and peers."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run
from benchmarks.rules import RULES

PEERS = {
    "datatrove": [
        "gopher_quality",
        "gopher_repetition",
        "fineweb_quality",
        "c4_quality",
        "pretraining",
        "replace_pii",
        "fix_unicode",
        "minhash",
    ],
    "datajuicer": [
        "character_repetition",
        "word_repetition",
        "special_character_ratio",
        "alphanumeric_ratio",
        "word_count",
    ],
}
"""The rules that are measured in each peer."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures: the operators, then the peers."""
    rows = bench.size(20_000, 2_000)
    source = bench.source(f"prose{rows}", corpus.prose(rows))
    paces = {}
    for name in RULES:
        figure, paces[name] = against_plain(bench, source, name)
        yield figure
    few = bench.size(2_000, 240)
    for peer in PEERS:
        yield from against_peer(bench, bench.source(f"prose{few}", corpus.prose(few)), peer, paces)


def against_plain(bench: Bench, source: Path, name: str) -> tuple[Figure, float]:
    """Return the figure of an operator, and its records per CPU second."""
    contender = Contender("benchmarks.rules", {"source": str(source), "rules": [name]})
    run = bench.in_turn({"ours": contender}, _anything, rounds=1)["ours"][0]
    found, rule = run.facts["rates"][name], RULES[name]
    note = f"{found['ours'] / found['plain']:.1f} x plain code"
    if rule.compared:
        note += f", which agrees about {found['same']:.1%}"
    figure = Figure("library", rule.operator, found["ours"], "records/CPU s", rule.goal, note=note)
    return figure, found["ours"]


def against_peer(
    bench: Bench, source: Path, peer: str, paces: dict[str, float]
) -> Iterator[Figure]:
    """Yield the ratios of our records per CPU second to those of a peer as shipped."""
    python = (bench.peers or Path()) / peer / "bin" / "python"
    rates, why = {}, "not installed"
    if bench.peers is not None and python.exists():
        given = {"source": str(source), "rules": PEERS[peer]}
        contender = Contender(f"benchmarks.peers.{peer}_rules", given, str(python))
        try:
            run = bench.in_turn({peer: contender}, _anything, rounds=1)[peer][0]
            rates = run.facts["rates"]
        except ContenderError as error:
            why = f"failed: {' '.join(str(error).split())[-120:]}"
    for name in PEERS[peer]:
        what = f"{RULES[name].operator} over {peer}"
        if name in rates:
            note = f"{rates[name]:,.0f} records/CPU s as shipped"
            yield Figure("library", what, paces[name] / rates[name], "x", note=note)
        else:
            yield Figure("library", what, math.nan, "x", note=why)


def _anything(_: Mapping[str, Run]) -> None:
    """Check nothing: the share of equal results is a fact of the run."""
