"""Random pipelines over random inputs, and a reference interpreter of twenty lines.

python -m tests.faults.random_pipelines FOLDER SEED    materializes one; campaigns kill it

The interpreter holds all records in memory and has no modes and no files. The engine's results are
compared with its results.
"""

import asyncio
import copy
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops import config, data_register, pipeline

Row = dict[str, Any]
_BAD_LINES: Final = (b"{broken", b"[1,2]", b'"text"')
_BAD_LINE: Final = object()  # in the input: not a JSON object
_NOT_FINITE: Final = float("nan")


@dataclass(frozen=True)
class Node:
    """One node of a random pipeline.

    Attributes:
        kind: ``record``, ``selection`` or ``dataset``.
        salt: Determines the operator's action on each record.
        inputs: Names of nodes; ``source`` is the pipeline's input.
        settings: The settings of its operator.
    """

    name: str
    kind: str
    salt: int
    inputs: tuple[str, ...]
    settings: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A random pipeline and its input.

    Attributes:
        lines: Of the input file, bad ones among them.
        text: The input file: blank lines, CRLF, a byte order mark and a missing last newline.
        seconds: How long an operator may pause on a record.
    """

    nodes: tuple[Node, ...]
    lines: tuple[bytes, ...]
    text: bytes
    seconds: float

    @classmethod
    def draw(cls, seed: int) -> "Plan":
        """Return the plan of a seed."""
        chance = random.Random(seed)
        lines = tuple(_line(chance, n) for n in range(chance.choice([0, 1, 3, 40, 150, 600])))
        if lines and all(line in _BAD_LINES for line in lines):
            lines = (_record(chance, 0), *lines[1:])  # a file without any record is refused
        seconds = chance.choice([0.0, 0.0005, 0.002])
        return cls(_nodes(chance), lines, _text(chance, lines), seconds)


def _line(chance: random.Random, n: int) -> bytes:
    return chance.choice(_BAD_LINES) if chance.random() < 0.03 else _record(chance, n)


def _record(chance: random.Random, n: int) -> bytes:
    row = {"n": n, "t": "é" * chance.randrange(4), "z": [None, {"q": chance.randrange(9)}]}
    return orjson.dumps(row)


def _text(chance: random.Random, lines: tuple[bytes, ...]) -> bytes:
    parts = []
    for line in lines:
        parts.append(line + chance.choice([b""] * 12 + [b"  ", b"\r"]) + b"\n")
        if chance.random() < 0.03:
            parts.append(b"  \n")
    text = b"".join(parts)
    if chance.random() < 0.3:
        text = text.removesuffix(b"\n")
    return (b"\xef\xbb\xbf" if chance.random() < 0.2 else b"") + text


def _nodes(chance: random.Random) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for number in range(chance.randrange(1, 5)):
        kind = chance.choice(["record", "record", "record", "selection", "dataset"])
        modes = ["single", "thread", "process"] + ["async"] * (kind == "record")
        before = ["source", *(node.name for node in nodes)]
        most = 1 if kind == "dataset" else min(3, len(before))
        settings = {
            "_concurrency_mode": chance.choice(modes),
            "_max_workers": chance.randrange(1, 5),
            "_reuse_outcomes": kind == "record" and chance.random() < 0.25,
        }
        inputs = tuple(chance.sample(before, chance.randrange(1, most + 1)))
        nodes.append(Node(f"node{number}", kind, chance.randrange(1, 9), inputs, settings))
    return tuple(nodes)


# ---------------------------------------------------------------- operators


def _fate(row: Row, salt: int) -> int:
    size = len(orjson.dumps(row, option=orjson.OPT_SORT_KEYS))
    return (size * 31 + int(row.get("n", 0)) * 17 + salt * 7) % 11


def become(row: Row, salt: int) -> object:  # noqa: C901 - a table
    """Return the outcome of a record operator for a record: every kind of outcome occurs."""
    match _fate(row, salt):
        case 0:
            row[f"kept{salt}"] = True
            return None
        case 1:
            return {"n": row["n"], "x": [row.get("x"), salt], "é": "\u2028"}
        case 2:
            return [{**row, "i": i} for i in range(salt % 3 + 1)]
        case 3:
            return []
        case 4:
            msg = f"bad {row['n']}"
            raise ValueError(msg)
        case 5 if salt % 2:
            return "nonsense"
        case 6 if salt % 2:
            return {"n": row["n"], "nan": _NOT_FINITE}
        case 7:
            return {"n": salt, "long": "y" * (salt * 100)}
    return row


def choose(sketches: Iterable[int]) -> Iterator[bool]:
    """Yield whether each record stays: its sketch differs from the one before."""
    before = None
    for sketch in sketches:
        yield sketch not in (before, 2)
        before = sketch


def sketch_of(row: Row, salt: int) -> int:
    """Return a record's sketch."""
    fate = _fate(row, salt)
    if fate == 9:
        raise KeyError(fate)
    return fate


def numbered(rows: Iterable[Row], salt: int) -> list[Row]:
    """Return all records in reverse order, each with its place."""
    return [{**row, "p": place, "s": salt} for place, row in enumerate(reversed(list(rows)))]


# ---------------------------------------------------------------- the reference


@dataclass(frozen=True)
class Expected:
    """The expected outcome of a node: its result, and the indices of its failed records."""

    rows: list[Any]
    failed: list[int]


def interpret(plan: Plan) -> dict[str, Expected]:
    """Return the expected outcome of every node."""
    source = [orjson.loads(line) if line.startswith(b'{"') else _BAD_LINE for line in plan.lines]
    found = {"source": Expected(source, [])}
    for node in plan.nodes:
        rows = [row for name in node.inputs for row in found[name].rows]
        found[node.name] = _interpreted(node, rows)
    del found["source"]
    return found


def _interpreted(node: Node, rows: list[Any]) -> Expected:
    good = [index for index, row in enumerate(rows) if row is not _BAD_LINE]
    if node.kind == "dataset":
        made = numbered([copy.deepcopy(rows[index]) for index in good], node.salt)
        return Expected(made, sorted(set(range(len(rows))) - set(good)))
    worked: dict[int, Any] = {}
    for index in good:
        try:
            row = copy.deepcopy(rows[index])
            act = sketch_of if node.kind == "selection" else _records_of
            worked[index] = act(row, node.salt)
        except (ValueError, KeyError):
            continue
    failed = [index for index in range(len(rows)) if index not in worked]
    if node.kind == "selection":
        stays = zip(worked, choose(worked.values()), strict=True)
        return Expected([rows[index] for index, stay in stays if stay], failed)
    return Expected([made for each in worked.values() for made in each], failed)


def _records_of(row: Row, salt: int) -> list[Row]:
    returned = become(row, salt)
    records = [row] if returned is None else returned
    records = [records] if isinstance(records, dict) else records
    if not isinstance(records, list) or any("nan" in record for record in records):
        msg = "no result"
        raise ValueError(msg)
    return records


# ---------------------------------------------------------------- the pipeline


def _seconds(row: Row, longest: float) -> float:
    return longest * (_fate(row, 3) % 4)


@data_register("data.random_pipelines")
def work(record, salt=0, longest=0.0):
    time.sleep(_seconds(record, longest))
    return become(record, salt)


@data_register("data.random_pipelines")
async def work_async(record, salt=0, longest=0.0):
    await asyncio.sleep(_seconds(record, longest))
    return become(record, salt)


@data_register("data.random_pipelines", rewrite_func="forward_batch_input", _stop_after_failures=0)
def number(records, salt=0):
    return numbered(records, salt)


class Choose(data_register.new_group("random_pipelines")):  # type: ignore[misc]
    """Drops records like the one before."""

    def __init__(self, salt=0, longest=0.0, **kwargs):
        super().__init__(**kwargs)
        self.salt, self.longest = salt, longest

    def sketch(self, record):
        time.sleep(_seconds(record, self.longest))
        return sketch_of(record, self.salt)

    def keep(self, sketches):
        yield from choose(sketches)


def materialize(home: Path, seed: int) -> None:
    """Materialize the plan of a seed below ``home``, which has its input."""
    plan = Plan.draw(seed)
    config.data_process_path = str(home / "results")
    config.data_process_resume = True
    with pipeline("random") as ppl:
        for node in plan.nodes:
            inputs = [ppl.source if name == "source" else name for name in node.inputs]
            ppl.add(node.name, _operator(node, plan.seconds), inputs=inputs)
    ppl.materialize(str(home / "input.jsonl"))


def _operator(node: Node, seconds: float) -> Any:
    if node.kind == "dataset":
        return number(salt=node.salt)
    settings = {name: value for name, value in node.settings.items() if value is not False}
    settings["_stop_after_failures"] = 0  # in many of these pipelines most records fail
    if node.kind == "selection":
        return Choose(salt=node.salt, longest=seconds, **settings)
    made = work_async if settings["_concurrency_mode"] == "async" else work
    return made(salt=node.salt, longest=seconds, **settings)


if __name__ == "__main__":
    from tests.faults import random_pipelines  # by its name: workers import the operators' module

    random_pipelines.materialize(Path(sys.argv[1]), int(sys.argv[2]))
