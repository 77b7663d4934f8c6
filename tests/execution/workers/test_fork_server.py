import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.execution.engine import Assignment, Kind, WorkerPool, fork_server
from tests.execution.helpers import (
    act,
    expected_results,
    lines,
    node,
    plan,
    run,
    run_over,
    second_thread,
    write_input,
)
from tests.faults.crashing import Script, alive, in_child, wait_until
from tests.subprocesses import killed_at_exit

_WHERE = """
import os
import sys

from dagster_dataops import data_register


@data_register("data.where", _concurrency_mode="process", _max_workers=1)
def where(record):
    print("said by a worker", flush=True)
    return {
        "version": VERSION,
        "variable": os.environ.get("WHERE"),
        "folder": os.getcwd(),
        "open": sorted(os.listdir("/proc/self/fd")),
        "server": os.getppid(),
        "dagster": "dagster" in sys.modules,
    }
"""


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs an operator of a module on disk in a worker."""
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    (tmp_path / "modules").mkdir()
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])

    def call(version: int):
        code = _WHERE.replace("VERSION", str(version))
        path = tmp_path / "modules" / "where_module.py"
        path.write_text(code)
        os.utime(
            path, (version, version)
        )  # so that its bytecode is not taken for that of the last version
        sys.modules.pop("where_module", None)
        import where_module  # type: ignore[import-not-found]

        with second_thread(True):
            report = run(where_module.where(), dataset, node(tmp_path), run=str(version))
        return next(iter(report.dataset))

    return call


@pytest.mark.slow
def test_one_server_forks_the_workers_of_every_run(where) -> None:
    first, second = where(1), where(2)
    assert first["server"] == second["server"] == fork_server.server_pid()
    assert first["server"] != os.getpid()
    assert not first["dagster"]


@pytest.mark.slow
def test_workers_see_modules_as_they_are_and_not_as_they_were(where) -> None:
    assert [where(version)["version"] for version in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.slow
def test_workers_have_only_the_necessary_descriptors_open(where) -> None:
    # Standard streams, connection, parent pipe and the one that is its own, input, two segments,
    # and the folder that is being listed.
    assert len(where(1)["open"]) <= 10


@pytest.mark.slow
def test_workers_have_the_environment_and_the_folder_of_their_parent_as_they_are_now(
    where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", "here")
    assert where(1)["variable"] == "here"
    monkeypatch.delenv("WHERE")
    monkeypatch.chdir(tmp_path)
    found = where(2)
    assert (found["variable"], found["folder"]) == (None, str(tmp_path))


def _assignment(tmp_path: Path) -> Assignment:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 3))
    return Assignment(str(dataset.path), dataset.stamp(), str(tmp_path), 1, True, 99)


@pytest.mark.slow
def test_a_killed_server_is_replaced_and_its_workers_continue(tmp_path: Path) -> None:
    pool = WorkerPool(act())
    with second_thread(True):
        assignment = _assignment(tmp_path)
        worker = pool.start(assignment)
        killed = fork_server.server_pid()
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not alive([killed]), 5, "the server is gone")
        other = pool.start(replace(assignment, segment=2))
    assert fork_server.server_pid() not in {None, killed}
    assert not psutil.pid_exists(killed)  # nor is it a zombie
    assert [each.connection.recv_bytes()[0] for each in (worker, other)] == [Kind.READY] * 2
    pool.terminate()
    assert worker.wait(10)
    assert other.wait(10)
    assert other.status == 0
    pool.close(1.0)


@pytest.mark.slow
def test_a_run_whose_server_is_killed_again_and_again_has_its_whole_result(tmp_path: Path) -> None:
    script = Script(tmp_path, _KILLS_THE_SERVER)
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(60)])
    script.finish()
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(60))
    assert len(script.log("kills.log")) > 1


_KILLS_THE_SERVER = """
@data_register("data.kills", _concurrency_mode="process", _max_workers=2)
def kills_the_server(record):
    if record["n"] % 20 == 10 and not (HOME / str(record["n"])).exists():
        (HOME / str(record["n"])).touch()
        log("kills.log", os.getppid())
        if os.getppid() != 1:
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    run(data.kills.kills_the_server())
"""


@pytest.mark.slow
def test_where_no_server_can_be_had_workers_are_fresh_interpreters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server, "_BOOT", "raise SystemExit(3)")
    monkeypatch.setattr(fork_server._kept, "server", None)
    records = plan(["keep", "drop", "keep"])
    with second_thread(True):
        run_over(tmp_path, act(_concurrency_mode="process"), records)
    assert not fork_server.running()
    assert node(tmp_path).result.read_bytes() == expected_results(records)


_SERVED = """
if __name__ == "__main__":
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    from dagster_dataops.execution.workers import fork_server
    run(data.served.same())
    log("server.log", fork_server.server_pid())
    if sys.argv[1] == "lives":
        child = os.fork()
        if not child:
            log("child.log")
            time.sleep(600)
        time.sleep(600)
"""
_SAME = """
@data_register("data.served", _concurrency_mode="process", _max_workers=1)
def same(record):
    return record
"""


def test_a_server_ends_with_its_parent_even_if_another_child_survives(tmp_path: Path) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": 1}])
    script = Script(tmp_path, _SAME + _SERVED)
    with killed_at_exit(script.start("lives")) as process:
        child = int(script.wait_for("child.log", 1)[0][0])
        server = int(script.log("server.log")[0][1])
        assert alive([server]) == [server]
        process.kill()
        process.wait()
        wait_until(lambda: not alive([server]), 5, "the server is gone")
        assert alive([child]) == [child]


@pytest.mark.slow
def test_a_server_does_not_keep_its_parents_output_open(tmp_path: Path) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": 1}])
    script = Script(tmp_path, _SAME + _SERVED)
    done = subprocess.run(
        [sys.executable, str(script.path), "ends"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"Warning" not in done.stderr
    assert not alive([int(script.log("server.log")[0][1])])


@pytest.mark.slow
def test_a_forked_child_has_no_server_of_its_parent(tmp_path: Path) -> None:
    with second_thread(True):
        WorkerPool(act()).start(_assignment(tmp_path)).signal(signal.SIGKILL)
    assert fork_server.running()

    def has_none() -> None:
        assert not fork_server.running()

    assert in_child(has_none) == 0
    assert fork_server.running()
