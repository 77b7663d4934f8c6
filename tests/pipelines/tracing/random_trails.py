"""Random pipelines with every kind of node, and a reference interpreter that knows every trail.

python -m tests.pipelines.tracing.random_trails FOLDER SEED    materializes one; tests kill it

The interpreter holds all records in memory and writes down which of them became which. It has no
modes, no files and no maps.
"""

import asyncio
import copy
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from dagster_dataops import DataPipeline, Drop, To, chain, combine, config, data_register, pipeline
from dagster_dataops.streams.factories import read_sequence
from tests.faults.random_pipelines import (
    _BAD_LINE,
    _fate,
    _line,
    _text,
    choose,
    numbered,
    sketch_of,
)

Row = dict[str, Any]
Ref = tuple[str, int]  # name of a result, index of the line
SOURCE = "source"
OUTPUTS = ("left", "right", "rest")
_REUSING = ("record", "batch", "chain", "split")


@dataclass(frozen=True)
class Entry:
    """What became of a record, or of the records of a row.

    Attributes:
        node: Name of the node.
        given: The records.
        made: The lines, in order.
        outcome: As `Step.outcome`.
        reasons: As `Step.reasons`.
    """

    node: str
    given: tuple[Ref, ...]
    made: tuple[Ref, ...]
    outcome: str
    reasons: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Node:
    """One node of a random pipeline.

    Attributes:
        kind: A key of `_KINDS`.
        salts: Determine the operator's action on each record; several in a chain.
        inputs: Names of results; ``source`` is the pipeline's input.
        settings: The settings of its operator.
    """

    name: str
    kind: str
    salts: tuple[int, ...]
    inputs: tuple[str, ...]
    settings: dict[str, Any]

    @property
    def results(self) -> list[str]:
        return [f"{self.name}.{one}" for one in OUTPUTS] if self.kind == "split" else [self.name]


@dataclass(frozen=True)
class Plan:
    """A random pipeline and its input."""

    nodes: tuple[Node, ...]
    lines: tuple[bytes, ...]
    text: bytes
    seconds: float

    @classmethod
    def draw(cls, seed: int, *, every: bool = False) -> "Plan":
        """Return the plan of a seed; with ``every`` kind of node, and more records."""
        chance = random.Random(f"trail {seed}")
        sizes = [400] if every else [0, 1, 3, 40, 150]
        lines = tuple(_line(chance, n) for n in range(chance.choice(sizes)))
        seconds = chance.choice([0.0, 0.0005])
        kinds = [*_KINDS] if every else chance.choices([*_KINDS], k=chance.randrange(2, 6))
        return cls(_nodes(chance, kinds), lines, _text(chance, lines), seconds)


def _nodes(chance: random.Random, kinds: list[str]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    known = [SOURCE]
    for number, kind in enumerate(kinds):
        modes = ["single", "thread", "process"]
        modes += ["async"] * (kind == "record")
        settings = {
            "_concurrency_mode": chance.choice(modes),
            "_max_workers": chance.randrange(1, 5),
            "_reuse_outcomes": kind in _REUSING and chance.random() < 0.3,
        }
        most = min(1 if kind == "dataset" else 3, len(known))
        least = 2 if kind in _STREAMS else 1
        inputs = chance.sample(
            known, min(len(known), chance.randrange(least, max(least, most) + 1))
        )
        if kind in _STREAMS:  # the source has bad lines, which would end a stream
            inputs = [one for one in inputs if one != SOURCE]
        made = kind if inputs else "record"
        salts = tuple(chance.randrange(1, 9) for _ in range(3 if made == "chain" else 1))
        taken = tuple(inputs or [SOURCE])
        nodes.append(Node(f"node{number}", made, salts, taken, settings))
        if kind != "dataset" or number % 2:
            known += nodes[-1].results
    return tuple(nodes)


# ---------------------------------------------------------------- operators


def act(row: Row, salt: int) -> object:
    """Return the outcome of a record operator for a record: every kind of outcome occurs."""
    match _fate(row, salt):
        case 0:
            row[f"kept{salt}"] = True
            return None
        case 1:
            return {"n": row["n"], "x": [row.get("x"), salt]}
        case 2:
            return [{**row, "i": i} for i in range(salt % 4)]
        case 3:
            return Drop(f"fate {salt}")
        case 4 if salt % 3:
            msg = f"bad {row['n']}"
            raise ValueError(msg)
        case 5 if salt % 3 == 0:
            return "nonsense"
    return row


def _records(returned: object, row: Row) -> tuple[list[Row], str | None]:
    """Return the records of a returned value, and why the record was dropped."""
    if returned is None:
        return [row], None
    if isinstance(returned, Drop):
        return [], returned.reason
    if isinstance(returned, dict):
        return [returned], None
    if not isinstance(returned, list):
        raise ValueError("nonsense")  # noqa: TRY004 - as for other failures
    return returned, None if returned else ""


def send(row: Row, salt: int) -> object:
    """Return where an operator with several results sends a record."""
    match _fate(row, salt):
        case 0 | 1 | 2:
            return To("left")
        case 3:
            return [To("right", {**row, "r": 1}), To("left"), To("right", {**row, "r": 2})]
        case 4:
            return []
        case 5:
            return Drop("unwanted")
        case 6:
            raise ValueError("refused")
    return To("rest")


def window(rows: list[Row], salt: int) -> list[Row]:
    """Return the records that a window becomes: any number.

    Raises:
        ValueError: A record is bad.
    """
    fates = [_fate(row, salt) for row in rows]
    if 4 in fates:
        msg = "bad window"
        raise ValueError(msg)
    return [{"n": sum(fates), "size": len(rows), "i": i} for i in range(sum(fates) % 4)]


def altered(row: Row, verdict: int) -> object:
    """Return the outcome of a selection for a record that it keeps with a verdict."""
    match verdict % 4:
        case 0:
            return {**row, "verdict": verdict}
        case 1:
            return Drop(f"verdict {verdict}")
        case 2:
            return [row, {**row, "twice": True}]
    row["seen"] = True
    return None


def verdicts(sketches: Iterator[int]) -> Iterator[Any]:
    """Yield False for records that go, and the sketch or True for those that stay."""
    found = list(sketches)
    for stays, sketch in zip(choose(found), found, strict=True):
        yield stays and (sketch if sketch % 3 else True)


# ---------------------------------------------------------------- the reference


@dataclass
class Trails:
    """The results of all nodes, and what became of every record.

    Attributes:
        rows: The records of each result.
        entries: What became of the records.
        ends: The nodes at which trails end.
    """

    plan: Plan
    rows: dict[str, list[Any]] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    ends: set[str] = field(default_factory=set)
    by_made: dict[Ref, Entry] = field(default_factory=dict)
    by_given: dict[tuple[str, Ref], list[Entry]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.by_made |= dict.fromkeys(entry.made, entry)
        for given in dict.fromkeys(entry.given):
            self.by_given.setdefault((entry.node, given), []).append(entry)

    def back(self, ref: Ref) -> tuple[set[Ref], set[Entry], set[str]]:
        """Return the source lines of a line, the entries between, and where the trail ends."""
        makers = {result: node.name for node in self.plan.nodes for result in node.results}
        sources: set[Ref] = set()
        found: set[Entry] = set()
        ends: set[str] = set()
        waiting = [ref]
        while waiting:
            one = waiting.pop()
            if one[0] == SOURCE:
                sources.add(one)
            elif makers[one[0]] in self.ends:
                ends.add(makers[one[0]])
            elif self.by_made[one] not in found:
                found.add(self.by_made[one])
                waiting += self.by_made[one].given
        return sources, found, ends

    def forth(self, ref: Ref, target: str) -> tuple[set[Ref], set[Entry], set[str]]:
        """Return the lines of ``target`` that a source line became, entries and ends."""
        before = _before(self.plan, target)
        found: set[Entry] = set()
        ends: set[str] = set()
        refs = {ref}
        for node in self.plan.nodes:
            for one in [one for one in refs if one[0] in node.inputs and node.name in before]:
                entries = self.by_given.get((node.name, one), [])
                if node.name in self.ends and not entries:
                    ends.add(node.name)
                found |= set(entries)
                refs |= {made for entry in entries for made in entry.made}
        return {one for one in refs if one[0] == target}, found, ends


def _before(plan: Plan, target: str) -> set[str]:
    """Return the names of the nodes that a result depends on, with its own."""
    wanted, found = {target}, set()
    for node in reversed(plan.nodes):
        if wanted & set(node.results):
            found.add(node.name)
            wanted |= set(node.inputs)
    return found


def interpret(plan: Plan) -> Trails:
    """Return what becomes of every record."""
    trails = Trails(plan)
    trails.rows[SOURCE] = [
        orjson.loads(line) if line.startswith(b'{"') else _BAD_LINE for line in plan.lines
    ]
    for node in plan.nodes:
        given = [(name, at) for name in node.inputs for at in range(len(trails.rows[name]))]
        trails.rows |= {result: [] for result in node.results}
        _KINDS[node.kind](trails, node, given)
    return trails


def _row(trails: Trails, ref: Ref) -> Any:
    row = trails.rows[ref[0]][ref[1]]
    if row is _BAD_LINE:
        raise ValueError("no record")
    return copy.deepcopy(row)


def _made(trails: Trails, result: str, rows: list[Any]) -> tuple[Ref, ...]:
    """Append records to a result; return their places."""
    first = len(trails.rows[result])
    trails.rows[result] += rows
    return tuple((result, at) for at in range(first, first + len(rows)))


def _of_records(trails: Trails, node: Node, given: list[Ref]) -> None:
    parts = len(node.salts) > 1
    for ref in given:
        reasons: dict[str, int] = {}
        try:
            rows = [_row(trails, ref)]
            for number, salt in enumerate(node.salts, 1):
                passed: list[Row] = []
                for row in map(copy.deepcopy, rows):
                    records, reason = _records(act(row, salt), row)
                    passed += records
                    if reason is not None and (parts or reason):
                        part = "work" if number == 1 else f"work_{number}"
                        text = f"{part}: {reason}" if reason else part
                        text = text if parts else reason
                        reasons[text] = reasons.get(text, 0) + 1
                rows = passed
        except (ValueError, KeyError):
            trails.add(Entry(node.name, (ref,), (), "failed"))
            continue
        _add(trails, node, ref, _made(trails, node.name, rows), reasons)


def _add(
    trails: Trails, node: Node, ref: Ref, made: tuple[Ref, ...], reasons: dict[str, int]
) -> None:
    outcome = ("dropped", "kept")[len(made)] if len(made) < 2 else "split"
    trails.add(Entry(node.name, (ref,), made, outcome, tuple(sorted(reasons.items()))))


def _of_split(trails: Trails, node: Node, given: list[Ref]) -> None:
    for ref in given:
        try:
            row = _row(trails, ref)
            sent = send(row, node.salts[0])
        except ValueError:
            trails.add(Entry(node.name, (ref,), (), "failed"))
            continue
        reasons = {sent.reason: 1} if isinstance(sent, Drop) else {}
        made: tuple[Ref, ...] = ()
        for one in [] if reasons else sent if isinstance(sent, list) else [sent]:
            made += _made(trails, f"{node.name}.{one.output}", [one.record or row])
        _add(trails, node, ref, made, reasons)


def _of_selection(trails: Trails, node: Node, given: list[Ref]) -> None:
    sketches: dict[Ref, int] = {}
    for ref in given:
        try:
            sketches[ref] = sketch_of(_row(trails, ref), node.salts[0])
        except (ValueError, KeyError):
            trails.add(Entry(node.name, (ref,), (), "failed"))
    for ref, stays in zip(sketches, choose(iter(sketches.values())), strict=True):
        rows = [_row(trails, ref)] if stays else []
        _add(trails, node, ref, _made(trails, node.name, rows), {})


def _of_alteration(trails: Trails, node: Node, given: list[Ref]) -> None:
    sketches: dict[Ref, int] = {}
    for ref in given:
        try:
            sketches[ref] = sketch_of(_row(trails, ref), node.salts[0])
        except (ValueError, KeyError):
            trails.add(Entry(node.name, (ref,), (), "failed"))
    for ref, verdict in zip(sketches, verdicts(iter(sketches.values())), strict=True):
        row = _row(trails, ref)
        kept = [row] if verdict else []
        returned = kept if isinstance(verdict, bool) else altered(row, verdict)
        rows, reason = _records(returned, row)
        _add(trails, node, ref, _made(trails, node.name, rows), {reason: 1} if reason else {})


def _of_windows(trails: Trails, node: Node, given: list[Ref]) -> None:
    size = node.salts[0]
    for first in range(0, len(given), size):
        _window(trails, node, given[first : first + size])


def _window(trails: Trails, node: Node, given: list[Ref]) -> None:
    """Settle a window; one that fails is halved."""
    rows: dict[Ref, Row] = {}
    for ref in given:
        try:
            rows[ref] = _row(trails, ref)
        except ValueError:
            trails.add(Entry(node.name, (ref,), (), "failed"))
    refs = list(rows)
    if not refs:
        return
    try:
        made = _made(trails, node.name, window(list(rows.values()), node.salts[0]))
    except ValueError:
        if len(refs) == 1:
            trails.add(Entry(node.name, (refs[0],), (), "failed"))
            return
        _window(trails, node, refs[: len(refs) // 2])
        _window(trails, node, refs[len(refs) // 2 :])
        return
    alone = "kept" if len(made) == 1 else "split"
    outcome = "dropped" if not made else "merged" if len(refs) > 1 else alone
    trails.add(Entry(node.name, tuple(refs), made, outcome))


def _of_dataset(trails: Trails, node: Node, given: list[Ref]) -> None:
    trails.ends.add(node.name)
    rows = []
    for ref in given:
        try:
            rows.append(_row(trails, ref))
        except ValueError:
            trails.add(Entry(node.name, (ref,), (), "failed"))
    _made(trails, node.name, numbered(rows, node.salts[0]))


def _stream(node: Node, streams: list[Any]) -> Any:
    match node.kind:
        case "concat":
            return DataPipeline.concat(*streams)
        case "zip":
            return DataPipeline.zip(*streams, names=_names(node), zip_to_shortest=True)
        case "round_robin":
            repeats = bool(node.salts[0] % 2)
            return DataPipeline.round_robin(*streams, allow_repeats=repeats)
    return DataPipeline.sample(*streams, seed=node.salts[0], allow_repeats=False)


def _names(node: Node) -> list[str]:
    return [f"in{at}" for at in range(len(node.inputs))]


def _of_stream(trails: Trails, node: Node, given: list[Ref]) -> None:
    """Read the stream over records that hold their own places."""
    streams = [
        read_sequence([{"at": ref, "row": _row(trails, ref)} for ref in given if ref[0] == name])
        for name in node.inputs
    ]
    for item in _stream(node, streams).and_return():
        found = list(item.values()) if node.kind == "zip" else [item]
        row = {key: one["row"] for key, one in item.items()} if node.kind == "zip" else item["row"]
        refs = tuple((name, at) for name, at in (one["at"] for one in found))
        outcome = "merged" if len(refs) > 1 else "kept"
        trails.add(Entry(node.name, refs, _made(trails, node.name, [row]), outcome))
    for ref in given:
        if (node.name, ref) not in trails.by_given:
            trails.add(Entry(node.name, (ref,), (), "dropped"))


_STREAMS = ("concat", "zip", "round_robin", "sample")
_KINDS: dict[str, Callable[[Trails, Node, list[Ref]], None]] = {
    "record": _of_records,
    "batch": _of_records,
    "chain": _of_records,
    "split": _of_split,
    "selection": _of_selection,
    "alteration": _of_alteration,
    "window": _of_windows,
    **dict.fromkeys(_STREAMS, _of_stream),
    "dataset": _of_dataset,
}


# ---------------------------------------------------------------- the pipeline


@data_register("data.random_trails")
def work(record, salt=0, longest=0.0):
    time.sleep(longest * (_fate(record, 3) % 4))
    return act(record, salt)


@data_register("data.random_trails")
async def work_async(record, salt=0, longest=0.0):
    await asyncio.sleep(longest * (_fate(record, 3) % 4))
    return act(record, salt)


@data_register("data.random_trails", rewrite_func="forward_batch")
def work_batch(records, salt=0):
    found = []
    for record in records:
        try:
            found.append(act(record, salt))
        except ValueError as error:
            found.append(error)
    return found


@data_register("data.random_trails", rewrite_func="forward_window")
def work_window(records, salt=0):
    return window(records, salt)


@data_register("data.random_trails", outputs=OUTPUTS)
def sort(record, salt=0):
    return send(record, salt)


@data_register("data.random_trails", rewrite_func="forward_batch_input", _stop_after_failures=0)
def number(records, salt=0):
    return numbered(records, salt)


class Choose(data_register.new_group("random_trails")):  # type: ignore[misc]
    """Drops records like the one before."""

    def __init__(self, salt=0, **kwargs):
        super().__init__(**kwargs)
        self.salt = salt

    def sketch(self, record):
        return sketch_of(record, self.salt)

    def keep(self, sketches: Iterator[int]):
        yield from choose(sketches)


class Alter(Choose):
    """Drops records like the one before, and changes some of the others."""

    def keep(self, sketches: Iterator[int]):
        return verdicts(sketches)

    def change(self, record, verdict):
        return altered(record, verdict)


def materialize(home: Path, plan: Plan) -> None:
    """Materialize a plan below ``home``, which has its input."""
    config.data_process_path = str(home / "results")
    config.data_process_resume = True
    with pipeline("random") as ppl:
        for node in plan.nodes:
            inputs = [_input(ppl, name) for name in node.inputs]
            if node.kind in _STREAMS:
                ppl.add(node.name, _combined(node, inputs))
            else:
                ppl.add(node.name, _operator(node, plan.seconds), inputs=inputs)
    ppl.materialize(str(home / "input.jsonl"))


def _input(ppl: Any, name: str) -> Any:
    node, _, output = name.partition(".")
    found = getattr(ppl, node)
    return getattr(found, output) if output else found


def _combined(node: Node, inputs: list[Any]) -> Any:
    match node.kind:
        case "concat":
            return combine.concat(inputs)
        case "zip":
            return combine.zip(inputs, names=_names(node), zip_to_shortest=True)
        case "round_robin":
            return combine.round_robin(inputs, allow_repeats=bool(node.salts[0] % 2))
    return combine.sample(inputs, seed=node.salts[0], allow_repeats=False)


def _operator(node: Node, seconds: float) -> Any:
    (salt, *_) = node.salts
    if node.kind == "dataset":
        return number(salt=salt)
    settings = {name: value for name, value in node.settings.items() if value is not False}
    settings["_stop_after_failures"] = 0
    if node.kind == "selection":
        return Choose(salt=salt, **settings)
    if node.kind == "alteration":
        return Alter(salt=salt, **settings)
    if node.kind in {"batch", "window"}:
        made = work_batch if node.kind == "batch" else work_window
        return made(salt=salt, _batch_size=salt, **settings)
    if node.kind == "split":
        return sort(salt=salt, **settings)
    if node.kind == "chain":
        parts = [work(salt=one, longest=seconds) for one in node.salts]
        return chain(*parts, name="worked", **settings)
    one = work_async if settings["_concurrency_mode"] == "async" else work
    return one(salt=salt, longest=seconds, **settings)


if __name__ == "__main__":
    from tests.pipelines.tracing import (
        random_trails,  # by its name: workers import the operators' module
    )

    number_, every_ = int(sys.argv[2]), sys.argv[3:] == ["every"]
    random_trails.materialize(Path(sys.argv[1]), random_trails.Plan.draw(number_, every=every_))
