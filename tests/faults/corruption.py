"""Damage unfinished checkpoints, resume from them, and check which records are repeated.

python tests/faults/corruption.py --count 10000 --seed 1
python tests/faults/corruption.py --cuts

A flipped bit may cost the spans that contain it, or lead to a refusal with a reason. It never costs
a record of another span, and never changes a byte of the result.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops import JsonlDataset, RunReport
from dagster_dataops.checkpoints.journal.frames import read_spans
from dagster_dataops.data import data_register
from dagster_dataops.foundation.concurrency.fork_safety import may_fork
from tests.execution.helpers import (
    SMALL,
    TINY,
    USUAL,
    Listener,
    SpanSizes,
    cut_by,
    error_rows,
    lines,
    node,
    run,
    write_input,
)
from tests.faults.crashing import wait_until
from tests.journals import FrameKind, frame, read_frames, segment_path
from tests.nodes import CheckpointContent, ProgressState, ResumePolicy

MODES: Final = ("process", "thread", "async", "single")
CUTS: Final = {"single spans": TINY, "small spans": SMALL, "merged spans": USUAL}
_RECORDS: Final = 48
_STOP_AT: Final = 36
HEAD_BYTES: Final = len(frame(FrameKind.SPANS, b""))
_FAILING: Final = [n for n in range(_RECORDS) if n % 11 == 5]


class _Stage:
    """The place where the operators work, and whether they are interrupted.

    Attributes:
        calls: The file that records their calls.
        gate: Blocks calls from `_STOP_AT` on, until the interrupted run has ended.
    """

    def __init__(self) -> None:
        self.calls = Path()
        self.gate: threading.Event | None = None

    def note(self, number: int) -> None:
        descriptor = os.open(self.calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, b"%d\n" % number)
        os.close(descriptor)

    def called(self) -> list[int]:
        return [int(line) for line in self.calls.read_text().split()] if self.calls.exists() else []


_STAGE: Final = _Stage()


def _act(record: dict[str, Any]) -> object:
    _STAGE.note(record["n"])
    if record["n"] % 11 == 5:
        msg = f"bad {record['n']}"
        raise ValueError(msg)
    return [{"n": record["n"], "text": record["text"][::-1]}] * (record["n"] % 3)


@data_register("data.corruption", _max_workers=2)
def work(record):
    if _STAGE.gate is not None and record["n"] >= _STOP_AT:
        _STAGE.note(record["n"])
        _STAGE.gate.wait()
    return _act(record)


@data_register("data.corruption", _max_workers=2)
async def work_async(record):
    if _STAGE.gate is not None and record["n"] >= _STOP_AT:
        _STAGE.note(record["n"])
        await asyncio.sleep(3600)
    return _act(record)


def _operator(mode: str) -> Any:
    # Calls that wait when the run is interrupted end only after it: 1 s is as good as 20.
    more = {"_drain_seconds": 1} if mode in {"thread", "async"} else {}
    return work_async(**more) if mode == "async" else work(_concurrency_mode=mode, **more)


class _Interrupting(Listener):
    """Interrupts the run once every record before `_STOP_AT` is done and some later one begun."""

    def update(self, state: ProgressState) -> None:
        called = set(_STAGE.called())
        if called.issuperset(range(_STOP_AT)) and max(called) >= _STOP_AT:
            raise KeyboardInterrupt


def _inputs() -> list[dict[str, Any]]:
    return [{"n": n, "text": f"text {n} é " + "x" * (n % 7)} for n in range(_RECORDS)]


def _expected() -> bytes:
    return lines(
        {"n": record["n"], "text": record["text"][::-1]}
        for record in _inputs()
        if record["n"] not in _FAILING
        for _ in range(record["n"] % 3)
    )


@dataclass(frozen=True)
class Unfinished:
    """An interrupted run, to be copied and damaged.

    Attributes:
        mode: The mode in which it is run and resumed.
        home: Its input and its node folder.
        settled: The records of every settled span, by the span's start.
    """

    mode: str
    home: Path
    settled: dict[int, frozenset[int]]

    @classmethod
    def make(cls, home: Path, mode: str, sizes: SpanSizes) -> "Unfinished":
        """Run until all but the last records are settled."""
        dataset = write_input(home / "input.jsonl", _inputs())
        _STAGE.calls, _STAGE.gate = home / "calls", threading.Event()
        wait_until(may_fork, 10, "workers can be forked, with the place of their notes")
        before = set(threading.enumerate())
        try:
            with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
                cut_by(patch, sizes)
                if mode == "single":  # has no other thread to interrupt it
                    patch.setattr(_STAGE.gate, "wait", _interrupt)
                run(_operator(mode), dataset, node(home), run="first", progress=_Interrupting())
        finally:
            _STAGE.gate.set()
            # An abandoned call would otherwise be recorded as one of the next run.
            for thread in set(threading.enumerate()) - before:
                thread.join()
            _STAGE.gate = None
        content = dataset.path.read_bytes()
        table = CheckpointContent.read(node(home).checkpoints / "1").table
        settled = {
            span.start: frozenset(
                range(
                    content[: span.start].count(b"\n"),
                    content[: span.start + span.length].count(b"\n"),
                )
            )
            for span, _, _ in table.ordered()
        }
        return cls(mode, home, settled)

    @property
    def checkpoint(self) -> Path:
        return node(self.home).checkpoints / "1"

    @property
    def finished(self) -> frozenset[int]:
        """The settled records."""
        return frozenset[int]().union(*self.settled.values())

    def files(self) -> list[Path]:
        """Return journal and segments that hold anything."""
        return sorted(path for path in self.checkpoint.iterdir() if path.stat().st_size)

    def hit_by(self, file: Path, first: int, last: int) -> frozenset[int]:
        """Return the settled records that damage to bytes [first, last) of a file may cost."""
        starts = [start for at, end, start in self._places[file.name] if at < last and first < end]
        return frozenset[int]().union(*(self.settled[start] for start in starts))

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int, int]]]:
        """Return the frame and the output of every span, by file: first byte, end, start."""
        places: dict[str, list[tuple[int, int, int]]] = {path.name: [] for path in self.files()}
        data = (self.checkpoint / "journal").read_bytes()
        notes, began = b"", 0  # a frame of notes belongs to the frame of spans that follows it
        for found in read_frames(data):
            made = frame(FrameKind(found.kind), found.payload)
            at = data.find(made)
            if found.kind == FrameKind.NOTES:
                notes, began = found.payload, at
                continue
            known = found.kind == FrameKind.SPANS
            spans = read_spans(found.payload, notes=notes) if known else None
            if spans is not None:
                first, end = began if notes else at, at + len(made)
                places["journal"] += [(first, end, start) for start in spans.columns[0]]
            notes = b""
        for span, segment, offset in CheckpointContent.read(self.checkpoint).table.ordered():
            end = offset + span.output_bytes + span.error_bytes
            name = segment_path(self.checkpoint, segment).name
            places.setdefault(name, []).append((offset, end, span.start))
        return places


def _interrupt() -> None:
    raise KeyboardInterrupt


class Flip(NamedTuple):
    """One bit of a file of an unfinished run."""

    file: Path
    position: int
    bit: int


@dataclass
class Campaign:
    """The results of a campaign.

    Attributes:
        outcomes: By mode and cut, how often nothing was lost, exactly the damaged records were
            repeated, or the checkpoint was refused.
        flips: Number of flipped bits.
        redone: Records repeated because their span was damaged.
        failures: Broken promises, in words.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    flips: int = 0
    redone: int = 0
    failures: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the figures as text."""
        names = sorted({name for name, _ in self.outcomes})
        kinds = ("harmless", "redone", "refused")
        rows = [f"{'':24} {kinds[0]:>9} {kinds[1]:>9} {kinds[2]:>9}"]
        rows += [
            f"{name:24} " + " ".join(f"{self.outcomes[name, kind]:9}" for kind in kinds)
            for name in names
        ]
        total = self.outcomes.total()
        text = (
            f"{total} copies damaged, {self.flips} bits flipped, {self.redone} records done again"
        )
        return "\n".join([*rows, f"{text}, {len(self.failures)} failures", *self.failures[:20]])


class Damager:
    """Copies unfinished runs, damages and finishes them."""

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self._folder = folder
        self.campaign = campaign
        self.kept: dict[str, Unfinished] = {}

    def prepare(self, modes: tuple[str, ...], cuts: tuple[str, ...]) -> None:
        """Make an unfinished run of every mode and cut."""
        for mode in modes:
            for cut in cuts:
                name = f"{mode}, {cut}"
                home = self._folder / name.replace(", ", "-").replace(" ", "-")
                self.kept[name] = Unfinished.make(home, mode, CUTS[cut])

    def flip(self, name: str, flips: list[Flip]) -> None:
        """Flip some bits of a copy and finish it."""
        kept = self.kept[name]
        hit = [kept.hit_by(flip.file, flip.position, flip.position + 1) for flip in flips]
        home = self._copy(name)
        for flip in flips:
            path = home / flip.file.relative_to(kept.home)
            data = bytearray(path.read_bytes())
            data[flip.position] ^= 1 << flip.bit
            path.write_bytes(data)
        what = ", ".join(f"bit {f.bit} of byte {f.position} of {f.file.name}" for f in flips)
        self._finish(name, home, frozenset[int]().union(*hit), what)

    def cut(self, name: str, file: Path, length: int) -> None:
        """Cut a file of a copy to its first bytes and finish it."""
        hit = self.kept[name].hit_by(file, length, file.stat().st_size)
        home = self._copy(name)
        os.truncate(home / file.relative_to(self.kept[name].home), length)
        self._finish(name, home, hit, f"{file.name} cut to {length} bytes")

    def _copy(self, name: str) -> Path:
        home = self._folder / "copy"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self.kept[name].home, home, ignore=shutil.ignore_patterns("calls"))
        return home

    def _finish(self, name: str, home: Path, hit: frozenset[int], what: str) -> None:
        _STAGE.calls = home / "calls"
        dataset = JsonlDataset.of_file(home / "input.jsonl")
        operator = _operator(self.kept[name].mode)
        wait_until(may_fork, 10, "workers can be forked, with the place of their notes")
        report = run(operator, dataset, node(home), run="second", resume=ResumePolicy.AUTO)
        try:
            self._check(name, report, home, hit)
        except AssertionError as error:
            self.campaign.failures.append(f"{name}: {what}: {error}")

    def _check(self, name: str, report: RunReport, home: Path, hit: frozenset[int]) -> None:
        kept = self.kept[name]
        called = _STAGE.called()
        assert node(home).result.read_bytes() == _expected(), "wrong bytes in the result"
        assert [row["index"] for row in error_rows(node(home))] == _FAILING, "wrong error rows"
        assert len(called) == len(set(called)), "a record was done twice"
        refused = bool(report.notes) and report.notes[0].startswith("starting afresh")
        open_records = frozenset(range(_RECORDS)) - kept.finished
        redone = frozenset(called) - open_records
        kind = "refused" if refused else "redone" if redone else "harmless"
        self.campaign.outcomes[name, kind] += 1
        self.campaign.redone += len(redone)
        assert set(called) >= open_records, "a record was never done"
        assert refused or redone == hit, f"done again: {sorted(redone)}, damaged: {sorted(hit)}"


def flip_bits(count: int, seed: int, damager: Damager) -> None:
    """Flip ``count`` random bits, one to three in each copy of one of the unfinished runs."""
    chance = random.Random(seed)
    names = list(damager.kept)
    number = 0
    while count > 0:
        name = names[number % len(names)]
        files = damager.kept[name].files()
        flips = []
        for _ in range(min(count, chance.choice((1, 1, 2, 3)))):
            in_journal = chance.random() < 0.5  # the smaller part
            file = chance.choice([path for path in files if (path.name == "journal") == in_journal])
            flips.append(Flip(file, chance.randrange(file.stat().st_size), chance.randrange(8)))
        damager.flip(name, flips)
        damager.campaign.flips += len(flips)
        count -= len(flips)
        number += 1


def flip_heads(name: str, damager: Damager) -> None:
    """Flip one bit in every byte of every frame's head, magic and checksum included."""
    journal = damager.kept[name].checkpoint / "journal"
    data = journal.read_bytes()
    at = data.find(b"DOJ1")
    while at >= 0:
        for position in range(at, at + HEAD_BYTES):
            damager.flip(name, [Flip(journal, position, position % 8)])
        at = data.find(b"DOJ1", at + 1)


def cut_everywhere(name: str, damager: Damager, step: int = 1) -> None:
    """Cut the journal after every byte, or every few."""
    journal = damager.kept[name].checkpoint / "journal"
    for length in range(0, journal.stat().st_size, step):
        damager.cut(name, journal, length)


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cuts", action="store_true", help="cut and flip heads everywhere instead")
    given = parser.parse_args()
    campaign = Campaign()
    with tempfile.TemporaryDirectory() as folder:
        damager = Damager(Path(folder), campaign)
        damager.prepare(MODES, tuple(CUTS))
        if given.cuts:
            for name in damager.kept:
                cut_everywhere(name, damager)
                flip_heads(name, damager)
        else:
            flip_bits(given.count, given.seed, damager)
    sys.stdout.write(campaign.table() + "\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
