import gc
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError, RunStoppedError, WorkerError
from tests.execution.engine import idle_workers, worker_pool
from tests.execution.helpers import (
    SMALL,
    TINY,
    act,
    cut_by,
    error_rows,
    expected_failures,
    expected_results,
    lines,
    node,
    operator_for,
    plan,
    run,
    run_over,
    second_thread,
    write_input,
)
from tests.faults.crashing import children_of, wait_until
from tests.finalized import garbage_of_this_process
from tests.nodes import ResumePolicy

_GROUP = "data.process_tests"
HOW = pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])


@pytest.mark.slow
def test_a_forked_worker_does_not_finalize_the_garbage_of_its_parent(tmp_path: Path) -> None:
    @data_register(_GROUP, _max_workers=2)
    def collecting(record):
        gc.collect()
        return record

    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(20)])
    with garbage_of_this_process(tmp_path / "finalized"):
        run(collecting(), dataset, node(tmp_path))


@pytest.mark.slow
@HOW
def test_lambdas_and_closures_as_options_reach_the_workers(tmp_path: Path, spawned: bool) -> None:
    factor = 3

    @data_register(_GROUP, _max_workers=2)
    def apply(record, function=None, more=()):
        return {"n": function(record["n"]), "more": [item(1) for item in more]}

    def thrice(n: int) -> int:
        return n * factor

    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(20)])
    operator = apply(function=lambda n: thrice(n) + 1, more=[lambda x: x + factor])
    with second_thread(spawned):
        run(operator, dataset, node(tmp_path))
    assert not error_rows(node(tmp_path))
    expected = [{"n": n * 3 + 1, "more": [4]} for n in range(20)]
    assert node(tmp_path).result.read_bytes() == lines(expected)


@HOW
def test_class_operators_defined_in_a_function_reach_the_workers(
    tmp_path: Path, spawned: bool
) -> None:
    group = data_register.new_group("process_tests")

    class Suffix(group):
        def __init__(self, suffix, **settings):
            super().__init__(**settings)
            self.suffix = suffix

        def forward(self, record):
            record["text"] += self.suffix

    with second_thread(spawned):
        run_over(tmp_path, Suffix(suffix="!", _max_workers=2), [{"text": "a"}] * 5)
    assert node(tmp_path).result.read_bytes() == b'{"text":"a!"}\n' * 5


def test_spans_with_failed_records_are_settled_once_and_undamaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_by(monkeypatch, SMALL)
    records = plan(["keep", "fail", "expand", "drop", "keep", "keep"] * 20)
    report = run_over(tmp_path, operator_for("process", 2), records)
    assert report.notes == ()
    assert node(tmp_path).result.read_bytes() == expected_results(records)
    assert [row["index"] for row in error_rows(node(tmp_path))] == expected_failures(records)


def test_an_operator_that_cannot_be_sent_is_a_worker_error_with_a_remedy(tmp_path: Path) -> None:
    @data_register(_GROUP)
    def locked(record, lock=None):
        return record

    operator = locked(lock=threading.Lock())
    with second_thread(True), pytest.raises(WorkerError, match="cannot be sent .*'thread'"):
        run_over(tmp_path, operator, [{"n": 1}])


@pytest.mark.slow
@HOW
def test_workers_have_no_dagster(tmp_path: Path, run_python, spawned: bool) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(20)])
    thread = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    imports = "import dagster" if spawned else ""
    code = f"""
import sys, threading, time
{imports}
from dagster_dataops import data, data_register, config
@data_register("data.lean", _max_workers=2)
def lean(record):
    record["dagster"] = "dagster" in sys.modules
{thread if spawned else ""}
if __name__ == "__main__":
    print(any(record["dagster"] for record in data.lean.lean()("input.jsonl")))
"""
    assert run_python(code) == "False\n"


def test_the_error_of_a_failing_step_names_record_and_line(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 40 + ["fail"] + ["keep"] * 9))
    with pytest.raises(RecordError, match="record 40 .*line 41.*ValueError") as caught:
        run(act(_max_workers=2, _ignore_errors=False), dataset, node(tmp_path))
    assert "outcome_of" in caught.value.traceback_text
    report = run(act(_max_workers=2), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert report.manifest.resumed > 0
    assert [row["index"] for row in error_rows(node(tmp_path))] == [40]


def test_no_worker_is_left_after_a_run(tmp_path: Path) -> None:
    before = set(children_of(os.getpid()))
    records = plan(["keep", "expand", "drop"] * 30)
    run(act(_max_workers=4), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert set(children_of(os.getpid())) == before
    assert node(tmp_path).result.read_bytes() == expected_results(records)


@pytest.mark.slow
def test_no_descriptor_is_left_after_a_run(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep", "fail"] * 30))
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("needs /proc")
    idle_workers.end()  # those of earlier tests, which may end meanwhile
    for mode in ("process", "thread", "single"):
        run(act(_max_workers=3, _concurrency_mode=mode), dataset, node(tmp_path, "warm"))
        before = len(list(folder.iterdir()))
        run(act(_max_workers=3, _concurrency_mode=mode), dataset, node(tmp_path))
        assert len(list(folder.iterdir())) == before, mode


@pytest.mark.slow
@HOW
def test_slow_records_after_quick_ones_are_shared_by_all_workers(
    tmp_path: Path, spawned: bool
) -> None:
    @data_register(_GROUP, _concurrency_mode="process", _max_workers=2)
    def dawdle(record):
        time.sleep(0.05 if record["n"] >= 2000 else 0.0)
        return {**record, "worker": os.getpid()}

    with second_thread(spawned):
        report = run_over(tmp_path, dawdle(), [{"n": n} for n in range(2040)])
    workers = Counter(record["worker"] for record in list(report.dataset)[2000:])
    assert [record["n"] for record in report.dataset] == list(range(2040))
    assert len(workers) == 2
    assert min(workers.values()) >= 10  # of 40; their worker continues for half a second


@HOW
def test_lines_after_a_stuck_record_are_processed_by_other_workers(
    tmp_path: Path, spawned: bool
) -> None:
    last = tmp_path / "last"

    @data_register(_GROUP, _concurrency_mode="process", _max_workers=2)
    def wait_for_the_last(record):
        if record["n"] == 1500:
            wait_until(last.exists, 20, "the last record")
        elif record["n"] == 19_999:
            last.touch()
        return record

    with second_thread(spawned):
        report = run_over(tmp_path, wait_for_the_last(), [{"n": n} for n in range(20_000)])
    assert report.manifest.failed == 0
    assert [record["n"] for record in report.dataset] == list(range(20_000))


def test_more_workers_than_records_are_no_problem(tmp_path: Path) -> None:
    records = plan(["keep", "expand"])
    run(act(_max_workers=9), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == expected_results(records)


def test_a_stop_ends_the_workers_and_keeps_their_finished_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_by(monkeypatch, TINY)
    before = set(children_of(os.getpid()))
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 500))
    with pytest.raises(RunStoppedError, match="maintenance"):
        run(act(_max_workers=2), dataset, node(tmp_path), should_stop=lambda: "maintenance")
    report = run(act(_max_workers=2), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert report.manifest.rows_in == 500
    assert set(children_of(os.getpid())) == before


@pytest.mark.slow
def test_standard_output_of_forked_workers_is_written_once(tmp_path: Path, run_python) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(4)])
    code = """
from dagster_dataops import data, data_register
@data_register("data.talk", _max_workers=2)
def talk(record):
    print("x")
print("before")
data.talk.talk()("input.jsonl")
print("after")
"""
    output = run_python(code)
    assert [output.count(word) for word in ("before", "x", "after")] == [1, 4, 1]


def test_the_interpreter_of_workers_is_this_one(tmp_path: Path) -> None:
    @data_register(_GROUP)
    def which(record):
        return {"executable": sys.executable, "path": list(sys.path)}

    with second_thread(True):
        run_over(tmp_path, which(_max_workers=1), [{"n": 1}])
    expected = {"executable": sys.executable, "path": sys.path}
    assert node(tmp_path).result.read_bytes() == lines([expected])


def _dying_starts(log: Path, deaths: int, die: Callable[[], object]) -> Callable[..., None]:
    """Return a worker's main function whose first ``deaths`` calls die before they are ready."""
    serve = worker_pool.serve

    def start(*arguments: Any) -> None:
        with log.open("ab", buffering=0) as file:
            file.write(b".")
        if log.stat().st_size <= deaths:
            die()
        serve(*arguments)

    return start


def _kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_workers_killed_from_outside_while_they_start_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = _dying_starts(tmp_path / "starts", 2, _kill_myself)
    monkeypatch.setattr(worker_pool, "serve", starts)
    run_over(tmp_path, act(_max_workers=1), plan(["keep"] * 20))
    assert node(tmp_path).result.read_bytes().count(b"\n") == 20


@pytest.mark.parametrize(
    ("die", "most"), [(_kill_myself, 4), (lambda: os._exit(3), 1)], ids=["killed", "exits"]
)
def test_workers_that_never_start_are_an_error_and_no_endless_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, die: Callable[[], object], most: int
) -> None:
    monkeypatch.setattr(worker_pool, "serve", _dying_starts(tmp_path / "starts", 100, die))
    with pytest.raises(WorkerError, match="died before it was ready"):
        run_over(tmp_path, act(_max_workers=1), plan(["keep"] * 20))
    assert (tmp_path / "starts").stat().st_size == most


_SLOW_MODULE = """
import os, threading, time
from pathlib import Path
from dagster_dataops import data_register

HERE = Path(__file__).parent
with (HERE / "imports.log").open("a") as log:
    log.write(f"{os.getpid()}\\n")
time.sleep(0.5)
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()  # as numpy has


@data_register("data.slow", _concurrency_mode="process", _max_workers=2)
def same(record):
    return record


@data_register("data.slow", _concurrency_mode="process", _max_workers=16)
def waits_for_others(record, others=1, folder=""):
    (HERE / folder).mkdir(exist_ok=True)
    (HERE / folder / str(os.getpid())).touch()
    until = time.monotonic() + 60
    while len(list((HERE / folder).iterdir())) < others and time.monotonic() < until:
        time.sleep(0.01)


@data_register("data.slow", _concurrency_mode="process", _max_workers=16)
def computes(record):
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
"""


@pytest.fixture
def slow_module(tmp_path: Path) -> Path:
    """Return a folder with a module that is slow to import and then forbids forking."""
    (tmp_path / "slow_module.py").write_text(_SLOW_MODULE)
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(1000)])
    write_input(tmp_path / "few.jsonl", [{"n": n} for n in range(16)])
    return tmp_path


def _imports_of(folder: Path) -> int:
    """Return the number of imports by workers; the first import was the parent's."""
    return len((folder / "imports.log").read_text().split()) - 1


@pytest.mark.slow
def test_a_pipeline_imports_a_module_at_most_once_a_worker(
    slow_module: Path, run_python: Callable[..., str]
) -> None:
    run_python("""
from dagster_dataops import pipeline
import slow_module
with pipeline("chain") as ppl:
    for number in range(8):
        ppl.add(f"node{number}", slow_module.same())
assert len(ppl("input.jsonl")) == 1000
""")
    assert 1 <= _imports_of(slow_module) <= 4  # two workers; a busy machine may have lost one


@pytest.mark.slow
def test_a_few_tiny_records_start_only_one_worker(
    slow_module: Path, run_python: Callable[..., str]
) -> None:
    run_python("""
import slow_module
assert len(slow_module.same(_max_workers=16)("few.jsonl")) == 16
""")
    assert 1 <= _imports_of(slow_module) <= 3  # usually 1; a worker that hangs has others started


@pytest.mark.slow
@pytest.mark.parametrize("name", ["few.jsonl", "input.jsonl"])
def test_workers_that_wait_are_as_many_as_are_allowed_but_no_more_than_records(
    slow_module: Path, run_python: Callable[..., str], name: str
) -> None:
    rows, most = (16, 40) if name == "few.jsonl" else (1000, 6)
    run_python(f"""
import slow_module
operator = slow_module.waits_for_others(others={min(rows, most)}, folder="x", _max_workers={most})
assert len(operator("{name}")) == {rows}
""")
    assert _imports_of(slow_module) == min(rows, most) == len(list((slow_module / "x").iterdir()))


@pytest.mark.slow
def test_workers_that_compute_are_not_many_more_than_cores_if_their_start_takes_long(
    slow_module: Path, run_python: Callable[..., str]
) -> None:
    run_python("""
import os
import slow_module
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
assert len(slow_module.computes()("few.jsonl")) == 16
""")
    assert 1 <= _imports_of(slow_module) <= 3
