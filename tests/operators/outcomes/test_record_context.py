"""Tests of dagster_dataops.operators.outcomes.record_context, in every concurrency mode."""

import asyncio
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import OperatorContext, StopRun, config, data, data_register
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.errors import OperatorOpenError, RunStoppedError
from dagster_dataops.operators.outcomes.record_context import Clients

MODES = ["single", "thread", "process"]


data_register.new_group("contexts")


@data_register("data.contexts")
def count_words(record: dict[str, Any], context: OperatorContext) -> Any:
    words = len(record["text"].split())
    context.count(words=words, cost=0.5)
    if words < 2:
        return context.drop("too_short")
    if words > 3:
        return [record, record]
    return record


@data_register("data.contexts")
async def count_slowly(record: dict[str, Any], context: OperatorContext) -> Any:
    await asyncio.sleep(0)
    return count_words.function(record, context)  # type: ignore[attr-defined]


@data_register("data.contexts")
def count_if_possible(record: dict[str, Any], context: OperatorContext | None = None) -> Any:
    if context is not None:
        context.count(words=1)
    return record


RECORDS = [{"text": " ".join("x" * (n % 5 + 1)), "n": n} for n in range(200)]


def manifest_of(folder: Path) -> Manifest:
    (path,) = folder.rglob("*_results.jsonl.json")
    found = Manifest.load(path)
    assert found is not None
    return found


@pytest.fixture
def root(tmp_path: Path) -> Any:
    with config.temporary(data_process_path=tmp_path):
        yield tmp_path


@pytest.mark.parametrize("mode", MODES)
def test_counts_and_drops_are_exact_in_every_mode(root: Path, mode: str) -> None:
    operator = data.contexts.count_words(_concurrency_mode=mode, _max_workers=2)
    results = operator([{**record} for record in RECORDS])
    _check(results, manifest_of(root))


def test_counts_and_drops_are_exact_in_async_mode(root: Path) -> None:
    results = data.contexts.count_slowly(_max_workers=8)([{**record} for record in RECORDS])
    _check(results, manifest_of(root))


def _check(results: list[Any], manifest: Manifest) -> None:
    words = [n % 5 + 1 for n in range(200)]
    assert manifest.counts == {"words": sum(words), "cost": 100.0}
    assert manifest.drops == {"too_short": 40}
    examples = manifest.drop_examples["too_short"]
    assert [example["line"] for example in examples] == [1, 6, 11]
    assert json.loads(examples[0]["input"]) == RECORDS[0]
    assert manifest.dropped == 40
    wanted = Counter({record["n"]: 2 if n % 5 + 1 > 3 else 1 for n, record in enumerate(RECORDS)})
    assert Counter(record["n"] for record in results) == {
        n: number for n, number in wanted.items() if n % 5
    }


class Opened(data.contexts):
    def __init__(self, log: str, fails: str = "", **given: Any) -> None:
        super().__init__(**given)
        self.log = log
        self.fails = fails

    def open(self, context: OperatorContext) -> None:
        self.context = context
        self._note("open")
        if self.fails == "open":
            raise ValueError("no model there")

    def close(self) -> None:
        self._note("close")

    def forward(self, record: dict[str, Any]) -> Any:
        if record["n"] == 150 and self.fails == "stop":
            raise StopRun("the key is invalid")
        return {"n": record["n"], "index": self.context.index, "thread": threading.get_ident()}

    def _note(self, text: str) -> None:
        with Path(self.log).open("a") as file:
            file.write(text + "\n")


@pytest.mark.parametrize("mode", MODES)
def test_every_open_is_followed_by_a_close(root: Path, mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    operator = data.contexts.Opened(log=str(log), _concurrency_mode=mode, _max_workers=2)
    results = operator([{**record} for record in RECORDS])
    assert [record["index"] for record in results] == list(range(200))
    counts = Counter(log.read_text().split())
    assert counts["open"] == counts["close"] >= 1


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_in_open_fails_the_run_and_blames_no_record(
    root: Path, mode: str, tmp_path: Path
) -> None:
    operator = data.contexts.Opened(
        log=str(tmp_path / "log"), fails="open", _concurrency_mode=mode, _max_workers=2
    )
    with pytest.raises(OperatorOpenError, match="contexts.Opened: its open.. failed: ValueError"):
        operator([{**record} for record in RECORDS])
    assert not list(root.rglob("*_error.jsonl"))


@pytest.mark.parametrize("mode", MODES)
def test_an_operator_stops_the_run_and_the_next_run_resumes(
    root: Path, mode: str, tmp_path: Path
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    log = str(tmp_path / "log")
    settings = {"_concurrency_mode": mode, "_max_workers": 1}
    with pytest.raises(RunStoppedError, match="the key is invalid"):
        data.contexts.Opened(log=log, fails="stop", **settings)(str(source))
    assert not list(root.rglob("*_error.jsonl"))
    with config.temporary(data_process_path=root, data_process_resume=True):
        results = data.contexts.Opened(log=log, **settings)(str(source))
    assert len(results) == 200


@data_register("data.contexts", _timeout=1.0, _concurrency_mode="thread")
def waits_long(record: dict[str, Any], context: OperatorContext) -> Any:
    with context.waiting():
        time.sleep(record["waits"])
    time.sleep(record["works"])
    return record


@data_register("data.contexts", _timeout=1.0)
async def waits_long_async(record: dict[str, Any], context: OperatorContext) -> Any:
    with context.waiting():
        await asyncio.sleep(record["waits"])
    await asyncio.sleep(record["works"])
    return record


@pytest.mark.parametrize("mode", ["thread", "process", "async"])
def test_waiting_does_not_count_towards_the_time_limit(root: Path, mode: str) -> None:
    make = data.contexts.waits_long_async if mode == "async" else data.contexts.waits_long
    records = [{"waits": 1.2, "works": 0}, {"waits": 0.4, "works": 5}]
    results = make(_concurrency_mode=mode, _max_workers=1)(records)
    assert results == records[:1]
    (errors,) = root.rglob("*_error.jsonl")
    assert json.loads(errors.read_text())["exception"] == "RecordTimeout"


class BusyError(Exception):
    retry_after = 0.5


@data_register("data.contexts", _retries=1, _backoff=0)
def busy_once(record: dict[str, Any], path: str) -> Any:
    if not Path(path).exists():
        Path(path).write_text(str(time.monotonic()))
        raise BusyError
    return {"after": time.monotonic() - float(Path(path).read_text())}


@pytest.mark.parametrize("mode", MODES)
def test_a_retry_waits_as_long_as_the_error_asks(root: Path, mode: str, tmp_path: Path) -> None:
    operator = data.contexts.busy_once(path=str(tmp_path / "seen"), _concurrency_mode=mode)
    (record,) = operator([{}])
    assert record["after"] >= 0.5


@pytest.mark.parametrize("mode", ["thread", "async"])
def test_calls_in_flight_are_waited_for_when_the_run_stops(
    root: Path, mode: str, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(60)))
    make = data.contexts.pays_async if mode == "async" else data.contexts.pays
    settings = {"log": str(log), "_concurrency_mode": mode, "_max_workers": 20}
    broke = tmp_path / "calls.broke"
    broke.touch()
    with pytest.raises(RunStoppedError, match="no money left"):
        make(**settings)(str(source))
    broke.unlink()
    with config.temporary(data_process_path=root, data_process_resume=True):
        assert len(make(**settings)(str(source))) == 60
    called = [int(line) for line in log.read_text().split()]
    assert sorted(called) == sorted([*range(60), 19])


@data_register("data.contexts")
def pays(record: dict[str, Any], log: str) -> Any:
    _pay(log, record["n"])
    time.sleep(0.4)
    return record


@data_register("data.contexts")
async def pays_async(record: dict[str, Any], log: str) -> Any:
    _pay(log, record["n"])
    await asyncio.sleep(0.4)
    return record


def _pay(log: str, number: int) -> None:
    with Path(log).open("a") as file:
        file.write(f"{number}\n")
    if number == 19 and Path(f"{log}.broke").exists():
        raise StopRun("no money left")


def test_a_missing_client_can_be_asked_for():
    clients = Clients("a node", {"judge": 1})

    assert "judge" in clients
    assert "default" not in clients


async def note_positions(record: dict[str, Any], context: OperatorContext) -> Any:
    return {"position": context.position}


def test_the_position_of_a_record_is_that_of_its_line(root: Path):
    operator: Any = data_register("data.contexts")(note_positions)

    rows = operator()([{"text": "a"}, {"text": "bc"}, {"text": "d"}])

    assert [row["position"] for row in rows] == [0, 13, 27]


@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_annotated_as_the_context_may_have_a_default(root: Path, mode: str) -> None:
    operator = data.contexts.count_if_possible(_concurrency_mode=mode)
    assert operator([{"text": "a"}]) == [{"text": "a"}]

    assert manifest_of(root).counts == {"words": 1}
    assert count_if_possible.function({"text": "a"}) == {"text": "a"}  # type: ignore[attr-defined]
