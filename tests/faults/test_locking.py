"""Tests of several runs in one folder, on one or several machines: only one runs."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import FolderLockedError, RunStoppedError
from tests.execution.helpers import lines, node, run, write_input
from tests.faults.cases import cases
from tests.faults.crashing import HANG_SECONDS, Script, wait_until
from tests.faults.failing import SmallDisk, small_disk
from tests.nodes import FolderLock, ResumePolicy, existing
from tests.subprocesses import killed_at_exit

_RECORDS = [{"n": n} for n in range(8)]
_RACERS = 4
_RACES = cases(5, campaign=100)


@data_register("data.racing", _concurrency_mode="single")
def alone(record, place="", until=""):
    """Fail if another process is inside the operator as well; wait until a file beside exists."""
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.close(descriptor)
    for _ in range(10):
        os.sched_yield()
    if until:
        wait_until(lambda: any(Path(place).parent.glob(until)), 20, until)
    Path(place).unlink()
    return record


def _race(home: Path, number: int, start: int, lock_seconds: float) -> None:
    """Run in a child: wait for the start, run, write down the outcome."""
    os.read(start, 1)
    dataset = write_input(home / f"input-{number}.jsonl", _RECORDS)
    until = "" if lock_seconds else "outcome-*"  # else another one has not even tried
    operator = alone(place=str(home / "inside"), until=until, _ignore_errors=False)
    try:
        run(operator, dataset, node(home), run=f"racer-{number}", lock_seconds=lock_seconds)
        outcome = "finished"
    except FolderLockedError as error:
        outcome = str(error)
    (home / f"outcome-{number}").write_text(f"{os.getpid()} {outcome}")


def _started(home: Path, lock_seconds: float) -> list[str]:
    """Start racers at the same moment and return the outcome of each."""
    home.mkdir()
    start, go = os.pipe()
    children = []
    for number in range(_RACERS):
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(go)
                _race(home, number, start, lock_seconds)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    os.close(start)
    os.close(go)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * _RACERS
    return [(home / f"outcome-{number}").read_text() for number in range(_RACERS)]


@pytest.mark.slow
def test_of_several_runs_at_once_one_works_and_the_others_name_it(tmp_path: Path) -> None:
    refused = 0
    for number in range(_RACES):
        outcomes = _started(tmp_path / f"{number}", lock_seconds=0)
        finished = [o.split()[0] for o in outcomes if o.endswith("finished")]
        assert finished, outcomes
        for outcome in outcomes:
            if not outcome.endswith("finished"):
                refused += 1
                named = re.search(r"run racer-\d \(process (\d+) on (\S+), since 20", outcome)
                if named is None:  # the lock was held for a microsecond
                    assert "a run that has not written its name yet" in outcome
                else:
                    assert named[1] in finished
                    assert named[2] == socket.gethostname()
        assert node(tmp_path / f"{number}").result.read_bytes() == lines(_RECORDS)
    assert refused >= _RACES


@pytest.mark.slow
def test_runs_that_wait_work_one_after_the_other(tmp_path: Path) -> None:
    for number in range(5):
        outcomes = _started(tmp_path / f"{number}", lock_seconds=HANG_SECONDS)
        assert all(outcome.endswith("finished") for outcome in outcomes)


_HOLDS = """
@data_register("data.holding", _max_workers=2)
def holds(record):
    if len(sys.argv) > 2 and not os.fork():
        time.sleep(3600)  # outlives the run
    log("inside.log", record["n"])
    time.sleep(3600)

run(data.holding.holds(_concurrency_mode=sys.argv[1]), run="the-first")
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("mode", ["single", "thread", "process"])
@pytest.mark.parametrize("forks", [False, True], ids=["plain", "operator forks"])
def test_the_folder_of_a_killed_run_is_taken_over_at_once(
    tmp_path: Path, mode: str, forks: bool
) -> None:
    write_input(tmp_path / "input.jsonl", _RECORDS)
    script = Script(tmp_path, _HOLDS)
    with killed_at_exit(script.start(mode, *["fork"] * forks)) as process:
        script.wait_for("inside.log", 1)
        with pytest.raises(FolderLockedError, match=rf"run the-first \(process {process.pid} on "):
            FolderLock(tmp_path / "node", "second", 0)
        process.kill()
        process.wait()
        # A child that was just being forked releases the lock in a moment.
        forking = forks or mode == "process"
        FolderLock(tmp_path / "node", "second", HANG_SECONDS if forking else 0.0).release()
    assert b"the-first" not in (tmp_path / "node" / ".lock").read_bytes()


_IN_CONTAINER = """
import sys, time
from pathlib import Path
from dagster_dataops.checkpoints.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]), "on-" + sys.argv[2], 0)
print("held", flush=True)
time.sleep(3600)
"""
_UNSHARE = ["unshare", "--uts", "--pid", "--mount", "--fork", "--kill-child"]


@pytest.fixture(params=["bind", "overlay"])
def shared(tmp_path: Path, request: pytest.FixtureRequest):
    """Return a folder, and the command that mounts it elsewhere in a container."""
    if subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root can make namespaces")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with small_disk(tmp_path / "disk", "size=4m") as disk:
        folder = disk.path / "root"
        if request.param == "overlay":
            folder = _overlay(disk)
        else:
            folder.mkdir()
        yield folder, elsewhere
        if request.param == "overlay":
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _overlay(disk: SmallDisk) -> Path:
    """Mount an overlay, the usual root of containers."""
    parts = {name: disk.path / name for name in ("lower", "upper", "work", "merged")}
    for path in parts.values():
        path.mkdir()
    options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
    given = ["mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"])]
    if subprocess.run(given, capture_output=True, check=False).returncode:
        pytest.skip("no overlay file system")
    return parts["merged"]


def test_a_run_in_a_container_locks_others_out_and_is_named_by_its_host(
    shared: tuple[Path, Path],
) -> None:
    folder, elsewhere = shared
    inside = (
        f"hostname container-a && mount --bind {folder} {elsewhere} && "
        'exec "$0" -c "$1" "$2" container-a'
    )
    given = [sys.executable, _IN_CONTAINER, str(elsewhere / "node")]
    command = [*_UNSHARE, "sh", "-c", inside, *given]
    with killed_at_exit(subprocess.Popen(command, stdout=subprocess.PIPE)) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(FolderLockedError) as caught:
            FolderLock(folder / "node", "second", 0)
        # Its process has another number in there: the host says where to look for it.
        assert re.search(r"run on-container-a \(process \d+ on container-a, ", str(caught.value))
        process.kill()
        process.wait()
    FolderLock(folder / "node", "second", HANG_SECONDS).release()


def test_a_run_resumes_the_checkpoint_of_another_host(tmp_path: Path) -> None:
    """The checkpoint knows no host: another name of the machine changes nothing."""
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    operator = alone(place=str(tmp_path / "inside"))
    system, _, *rest = os.uname()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "uname", lambda: os.uname_result((system, "another", *rest)))
        patch.setattr(socket, "gethostname", lambda: "another")
        stop = iter([None, "told to"])
        with pytest.raises(RunStoppedError):
            run(operator, dataset, node(tmp_path), run="first", should_stop=lambda: next(stop))
    (left,) = existing(node(tmp_path).checkpoints)
    report = run(operator, dataset, node(tmp_path), run="second", resume=ResumePolicy.AUTO)
    # The first resumes the saved records if the delay was a second: a slow disk.
    note, unchanged = report.notes
    assert left.table.records > 0  # all of them, unless the machine is slow
    assert note.split(";")[0] == f"resuming: {left.table.records} records settled by run first"
    assert unchanged == f"changed 0 of {len(_RECORDS)} records"
