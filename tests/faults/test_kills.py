"""Records that kill their workers, and workers and runs that are killed from outside."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import load_result
from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError, WorkerError
from tests.execution.helpers import (
    error_rows,
    lines,
    node,
    run,
    run_over,
    second_thread,
    write_input,
)
from tests.faults.crashing import (
    HANG_SECONDS,
    Script,
    alive,
    alive_in_session,
    in_child,
    wait_until,
)
from tests.nodes import ResumePolicy
from tests.subprocesses import killed_at_exit


@data_register("data.kills", _max_workers=2)
def poisonous(record):
    match record.get("poison"):
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    return {"n": record["n"]}


def _poisoned(path: Path, poison: dict[int, str], count: int = 400) -> Any:
    return write_input(
        path / "input.jsonl",
        [{"n": n, "poison": poison[n]} if n in poison else {"n": n} for n in range(count)],
    )


def _check_only_the_poisonous_are_missing(path: Path, poison: dict[int, str], count: int) -> None:
    folder = node(path)
    assert folder.result.read_bytes() == lines({"n": n} for n in range(count) if n not in poison)
    rows = error_rows(folder)
    assert [row["index"] for row in rows] == sorted(poison)
    assert {row["exception"] for row in rows} == {"WorkerDied"}
    for row in rows:
        assert row["input"] == {"n": row["index"], "poison": poison[row["index"]]}
        assert row["line"] == row["index"] + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "poison",
    [{0: "exit"}, {399: "kill"}, dict.fromkeys(range(0, 400, 45), "exit"), {5: "exit", 6: "kill"}],
    ids=["first", "last", "many", "neighbours"],
)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_killing_record_anywhere_costs_no_other_record(
    tmp_path: Path, poison: dict[int, str], workers: int
) -> None:
    run(poisonous(_max_workers=workers), _poisoned(tmp_path, poison), node(tmp_path))
    _check_only_the_poisonous_are_missing(tmp_path, poison, 400)


def test_a_killing_record_among_blank_lines_is_found(tmp_path: Path) -> None:
    dataset = _poisoned(tmp_path, {20: "exit"}, 40)
    text = dataset.path.read_bytes().replace(b"\n", b"\n\n  \n")
    dataset.path.write_bytes(text)
    run(poisonous(), type(dataset).of_file(dataset.path), node(tmp_path))
    rows = error_rows(node(tmp_path))
    assert [(row["index"], row["line"]) for row in rows] == [(20, 61)]
    assert node(tmp_path).result.read_bytes().count(b"\n") == 39


@pytest.mark.slow
def test_an_input_with_only_killing_records_ends(tmp_path: Path) -> None:
    poison = dict.fromkeys(range(5), "exit")
    run(poisonous(_stop_after_failures=0), _poisoned(tmp_path, poison, 5), node(tmp_path))
    _check_only_the_poisonous_are_missing(tmp_path, poison, 5)


def test_a_killing_record_fails_the_step_if_failures_are_not_ignored(tmp_path: Path) -> None:
    dataset = _poisoned(tmp_path, {30: "exit"}, 60)
    with pytest.raises(RecordError, match="WorkerDied") as caught:
        run(poisonous(_ignore_errors=False), dataset, node(tmp_path))
    assert (caught.value.index, caught.value.line) == (30, 31)


_HANGING = """
@data_register("data.script", _max_workers=2)
def slow(record):
    log("calls.log", record["n"])
    time.sleep(0.05)
    return {"n": record["n"]}

if sys.argv[1] == "spawned":
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
run(data.script.slow())
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["forked", "spawned"])
def test_a_worker_killed_from_outside_is_replaced(tmp_path: Path, how: str) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(60)])
    script = Script(tmp_path, _HANGING)
    with killed_at_exit(script.start(how)) as process:
        for calls in (5, 20, 40):
            worker = int(script.wait_for("calls.log", calls)[-1][0])
            if alive([worker]):
                os.kill(worker, signal.SIGKILL)
        assert process.wait(HANG_SECONDS) == 0, script.output()
    result = (tmp_path / "node" / "node_results.jsonl").read_bytes()
    assert result == lines({"n": n} for n in range(60))
    assert not (tmp_path / "node" / "node_error.jsonl").exists()


_UNLOADABLE = """
import os
if os.environ.get("IN_WORKER"):
    {}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("raise ImportError('not in a worker')", "not in a worker"),
        ("raise SystemExit(4)", "SystemExit"),
        ("os._exit(5)", "exit status 5"),
    ],
)
def test_a_worker_that_cannot_load_the_operator_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, reason: str
) -> None:
    import importlib

    name = f"unloadable_{len(line)}"
    code = f"from dagster_dataops import data_register\n@data_register('data.{name}')\n"
    code += "def keep(record):\n    return record\n"
    (tmp_path / f"{name}.py").write_text(_UNLOADABLE.format(line) + code)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module(name)
    monkeypatch.setenv("IN_WORKER", "1")
    with second_thread(True), pytest.raises(WorkerError, match=reason):
        run_over(tmp_path, module.keep(_max_workers=3), [{"n": 1}] * 10)


def test_a_run_that_dies_among_its_records_leaves_the_older_result(tmp_path: Path) -> None:
    operator = poisonous(_concurrency_mode="single")
    run(operator, write_input(tmp_path / "input.jsonl", [{"n": 1}, {"n": 2}]), node(tmp_path))
    poisoned = write_input(tmp_path / "other.jsonl", [{"n": 3}, {"n": 4, "poison": "exit"}])
    assert in_child(lambda: run(operator, poisoned, node(tmp_path), run="dead")) == 3
    assert load_result(node(tmp_path).path).read() == [{"n": 1}, {"n": 2}]
    report = run(poisonous(), poisoned, node(tmp_path), resume=ResumePolicy.AUTO)
    assert (report.dataset.read(), report.manifest.failed) == ([{"n": 3}], 1)


_MAPPING = """
import time
from dagster_dataops import read_sequence

def slowly(number):
    time.sleep(0.05)
    return number

if __name__ == "__main__":
    numbers = read_sequence(list(range(10_000)))
    for number in numbers.map(slowly, num_parallel_calls=2, mode="process"):
        print(number, flush=True)
"""


def test_the_processes_of_a_parallel_map_end_with_the_one_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "mapping.py"
    script.write_text(_MAPPING)
    command = [sys.executable, str(script)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    with killed_at_exit(started) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_until(lambda: len(alive_in_session(process.pid)) == 3, 10, "its workers")
        process.kill()
        process.wait()
        wait_until(lambda: not alive_in_session(process.pid), 10, "the end of its workers")
