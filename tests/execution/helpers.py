"""Operators, inputs and runs for the tests of the engine."""

import asyncio
import json
import math
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from dagster_dataops import JsonlDataset, RunReport
from dagster_dataops.checkpoints.places.node_place import Claim
from dagster_dataops.data import data_register
from dagster_dataops.execution import ticker
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.progress import Progress
from dagster_dataops.execution.records import span_loop
from dagster_dataops.execution.records.async_calling import async_callers
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.calls import Calls
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.workers import scheduler
from dagster_dataops.execution.workplaces import collector, range_worker, single
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.workplaces import WorkList
from tests.execution.engine import CallEach, Outcome, Tally
from tests.journals import Checkpoint, Line, RunFingerprint, fresh
from tests.nodes import (
    NodeFolder,
    OperatorExecutor,
    ProgressState,
    RunContext,
    background,
    deleting,
)

MODES = ("single", "thread", "async", "process")
GROUP = "data.engine_tests"


def outcome_of(record: dict[str, Any]) -> Any:  # noqa: C901 - a table
    """Act on ``record["do"]``: every kind of outcome that a record can have."""
    match record["do"]:
        case "keep":
            record["kept"] = True
            return None
        case "replace":
            return {"replaced": record["n"], "text": record["text"]}
        case "expand":
            return [{**record, "part": part} for part in range(record["n"] % 4 + 1)]
        case "drop":
            return []
        case "fail":
            raise ValueError(f"record {record['n']}: {record['text']}")
        case "exit":
            raise SystemExit(record["n"])
        case "unencodable":
            return {"n": record["n"], "bad": {1, 2}}
        case "nonsense":
            return record["n"]
    return record


KINDS = ("keep", "replace", "expand", "drop", "fail", "exit", "unencodable", "nonsense")


@data_register(GROUP)
def act(record, tag=""):
    returned = outcome_of(record)
    if tag and isinstance(returned, dict):
        returned["tag"] = tag
    return returned


@data_register(GROUP)
async def act_async(record, tag=""):
    await asyncio.sleep(0)
    returned = outcome_of(record)
    if tag and isinstance(returned, dict):
        returned["tag"] = tag
    return returned


@data_register(GROUP, rewrite_func="forward_batch_input")
def turn_around(records):
    return [{**record, "position": place} for place, record in enumerate(reversed(records))]


def operator_for(mode: str, workers: int, **given: Any) -> Any:
    """Return the operator that acts on its records, for one concurrency mode.

    Its runs do not stop after failed records, unless ``given`` sets a limit.
    """
    chosen = act_async if mode == "async" else act
    given = {"_stop_after_failures": 0, **given}
    return chosen(_concurrency_mode=mode, _max_workers=workers, **given)


def plan(kinds: Iterable[str]) -> list[dict[str, Any]]:
    """Return one record per kind."""
    return [{"n": n, "do": kind, "text": f"é {n} \N{SNOWMAN}"} for n, kind in enumerate(kinds)]


def lines(records: Iterable[object]) -> bytes:
    """Return ``records`` as jsonl."""
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def expected_results(records: Iterable[dict[str, Any]]) -> bytes:
    """Return the result that the engine must publish, made without the engine."""
    emitted: list[object] = []
    for record in records:
        if record["do"] in {"fail", "exit", "unencodable", "nonsense"}:
            continue
        copy = json.loads(json.dumps(record))
        returned = outcome_of(copy)
        emitted += (
            returned if isinstance(returned, list) else [copy if returned is None else returned]
        )
    return lines(emitted)


def expected_failures(records: Iterable[dict[str, Any]]) -> list[int]:
    """Return the positions of the records that fail."""
    failing = {"fail", "exit", "unencodable", "nonsense"}
    return [place for place, record in enumerate(records) if record["do"] in failing]


def call_one(settle: CallEach, line: bytes) -> Outcome:
    """Settle a single line."""
    output = bytearray()
    stretch = settle(iter((line,)), output, math.inf)
    if stretch.interrupt is not None:
        raise stretch.interrupt
    return bytes(output) if stretch.line is None else stretch.failure


def calls_of(settle: CallEach, limit: int = 0, **settings: Any) -> Calls:
    """Return calls of an operator with some settings; ``call`` takes its place.

    Args:
        settle: Called for lines, as the operator would be.
        limit: The number of failed calls that opens the breaker; 0 for none.
        settings: The settings, with their underscore.
    """
    operator = act(**settings)
    resolved = operator.__dataops__.resolved
    return Calls(
        operator=operator,
        settings=resolved,
        call=settle,
        breaker=Breaker(limit),
        retries=Retries(resolved),
        tally=Tally(),
    )


async def call_one_async(operator: Any, line: bytes) -> Outcome:
    """Settle a single line by an ``async def`` operator."""
    ((_, outcome, *_),) = await async_callers(operator)()([Line(0, len(line), line)])
    return outcome


def write_input(path: Path, records: Iterable[object]) -> JsonlDataset:
    """Write a jsonl file and return the handle on it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(records))
    return JsonlDataset.of_file(path)


def node(path: Path | Root, name: str = "node") -> NodeFolder:
    """Return the node folder ``name`` below ``path``."""
    return NodeFolder.of((path if isinstance(path, Root) else Root(path)) / name)


def run(
    operator: Any, dataset: JsonlDataset | list[JsonlDataset], folder: NodeFolder, **context: Any
) -> RunReport:
    """Run one operator."""
    inputs = dataset if isinstance(dataset, list) else [dataset]
    context = {"run": "test", **context}
    try:
        return OperatorExecutor(RunContext(**context)).run(operator, inputs, folder)
    finally:
        background.finish()
        deleting.finish()


def run_over(path: Path, operator: Any, records: Iterable[object], **context: Any) -> RunReport:
    """Run one operator over the records of a new input, both below ``path``."""
    return run(operator, write_input(path / "input.jsonl", records), node(path), **context)


def error_rows(folder: NodeFolder) -> list[dict[str, Any]]:
    """Return the rows of the error file; none if there is no such file."""
    if not folder.errors.exists():
        return []
    return [orjson.loads(line) for line in folder.errors.read_bytes().splitlines()]


def without_traceback(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return error rows without the fields that differ between modes."""
    hidden = {"traceback", "operator", "path"}
    return [{name: row[name] for name in row if name not in hidden} for row in rows]


@dataclass(frozen=True)
class SpanSizes:
    """The sizes of the pieces into which the engine cuts its work."""

    span_seconds: float
    slice_records: int
    range_bytes: int
    drain_seconds: float  # seconds between drains by workers


TINY = SpanSizes(0.0, 1, 1, 0.0)
SMALL = SpanSizes(0.0, 3, 200, 0.0002)
USUAL = SpanSizes(0.5, 4096, 4 << 20, 0.05)


def cut_by(patch: pytest.MonkeyPatch, sizes: SpanSizes) -> None:
    """Make every mode cut its work into spans of these sizes."""
    patch.setattr(span_loop, "SPAN_SECONDS", sizes.span_seconds)
    patch.setattr(span_loop, "BLOCK_BYTES", max(1, sizes.range_bytes // 4))
    patch.setattr(span_loop, "_MAX_SLICE", sizes.slice_records)
    patch.setattr(range_worker, "_SPAN_SECONDS", min(sizes.span_seconds, 0.01))
    patch.setattr(single, "_RANGE_BYTES", sizes.range_bytes)
    patch.setattr(scheduler, "_MAX_BYTES", sizes.range_bytes)
    patch.setattr(scheduler, "_MIN_BYTES", min(sizes.range_bytes, 64 << 10))
    patch.setattr(collector, "_PERIOD_SECONDS", sizes.drain_seconds)
    patch.setattr(collector, "_BURST_SECONDS", 0.0)


def look_at_every_tick(patch: pytest.MonkeyPatch) -> None:
    """Make runs sync, show progress and look for a stop request at every chance."""
    patch.setattr(ticker, "_TICK_SECONDS", 0.0)
    patch.setattr(ticker, "_STOP_CHECK_SECONDS", 0.0)


class Listener(Progress):
    """Remembers the notes and states that it receives."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.states: list[ProgressState] = []

    def start(self, name: str, state: ProgressState) -> None:
        self.states.append(state)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def update(self, state: ProgressState) -> None:
        self.states.append(state)

    def finish(self, state: ProgressState) -> None:
        self.states.append(state)


def sink_for(
    operator: Any, dataset: JsonlDataset, folder: NodeFolder, **context: Any
) -> CheckpointSink:
    """Return the sink of an attempt over all of ``dataset``, in a new checkpoint."""
    fingerprint = RunFingerprint.of(operator.__dataops__, dataset.identity)
    checkpoint = Checkpoint(fresh(folder.checkpoints), fingerprint, "test", 1.0)
    how = RunContext(run="test", progress=Listener(), **context)
    here = {"check": lambda: None, "sent_place": lambda: None, "shared_input": lambda one: one}
    unlocked = cast("Claim", SimpleNamespace(**here))  # later runs take the folder
    attempt = NodeAttempt(operator=operator, context=how, folder=folder, lock=unlocked)
    attempt.read([dataset])
    work = WorkList(operator, dataset)
    work.open = checkpoint.table.gaps(work.content)
    return CheckpointSink(attempt, work, checkpoint)


def run_single(sink: CheckpointSink) -> None:
    """Run all that is open in the caller's thread."""
    with sink.accepting():
        single.run(sink.attempt, sink.work, sink)


def settled_output(sink: CheckpointSink) -> Iterator[bytes]:
    """Yield result and error lines of every settled span, in input order."""
    from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader

    reader = SegmentReader(sink.checkpoint.segments)
    for span, segment, offset in sink.checkpoint.table.ordered():
        yield reader.read(segment, offset, span.output_bytes + span.error_bytes)
    reader.close()


class second_thread:  # noqa: N801 - reads as a function
    """Forbids forking inside its block, so that workers are spawned."""

    def __init__(self, wanted: bool) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._end.wait) if wanted else None

    def __enter__(self) -> None:
        if self._thread:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()
