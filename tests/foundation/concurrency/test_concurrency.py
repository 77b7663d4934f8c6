"""Tests of foundation.concurrency: threads, forks, locks, retries, steps of generators."""

import asyncio
import errno
import fcntl
import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.foundation.concurrency import cores, fork_safety
from dagster_dataops.foundation.concurrency.background import Background, native_ids
from dagster_dataops.foundation.concurrency.file_lock import lock_at_once, locked, unused
from dagster_dataops.foundation.concurrency.fork_safety import may_fork, register_waiting_threads
from dagster_dataops.foundation.concurrency.garbage import collected_rarely
from dagster_dataops.foundation.concurrency.retrying import STOP, Backoff, FailureRow
from dagster_dataops.foundation.concurrency.sent_code import pickled
from dagster_dataops.foundation.concurrency.stepping import (
    StepError,
    Steps,
    run_steps,
    run_steps_async,
)
from dagster_dataops.foundation.concurrency.waitable_thread import WaitableThread
from dagster_dataops.operators.options.concurrency_modes import MODES
from tests.faults.crashing import in_child, wait_until
from tests.faults.forking import busy_threads
from tests.nodes import background


def test_calls_run_one_after_the_other_in_order() -> None:
    beside, order = Background(), []
    for number in range(50):
        beside.run(lambda number=number: order.append(number))  # type: ignore[misc]
    beside.finish()
    assert order == list(range(50))


def test_no_thread_waits_for_a_call() -> None:
    beside, release = Background(), threading.Event()
    beside.run(lambda: release.wait(30) and None)
    assert beside.native_id is not None
    assert beside.native_id != threading.get_native_id()
    release.set()
    beside.finish()
    assert beside.native_id is None


def test_without_calls_no_thread_is_started() -> None:
    beside = Background()
    before = threading.active_count()
    beside.finish()
    assert beside.native_id is None
    beside.run(lambda: None)
    beside.finish()
    wait_until(lambda: threading.active_count() == before, 10, "the end of the thread")


def test_an_error_of_the_disk_does_not_affect_the_next_call() -> None:
    beside, ran = Background(), []

    def refuse() -> None:
        raise OSError("no such disk")

    beside.run(refuse)
    beside.run(lambda: ran.append(1))
    beside.finish()
    assert ran == [1]


def test_waiting_ends_after_its_time_and_dropped_calls_do_not_run() -> None:
    beside, ran, release = Background(daemon=True), [], threading.Event()
    beside.run(lambda: release.wait(30) and None)
    beside.run(lambda: ran.append(1))
    assert not beside.finish(0.01)
    beside.drop()
    release.set()
    assert beside.finish(10)
    assert not beside.busy
    assert ran == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_calls_after_a_failed_call_still_run() -> None:
    beside, ran, release = Background(), [], threading.Event()

    def fail() -> None:
        release.wait(30)
        raise ValueError("ours")

    beside.run(fail)
    beside.run(lambda: ran.append(1))
    failing = beside.native_id
    release.set()
    wait_until(lambda: beside.native_id != failing, 10, "the end of the thread")
    beside.finish()
    assert ran == [1]


def test_a_thread_that_an_interrupt_kept_from_starting_is_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside, ran = Background(), []

    def interrupt(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupt)
        with pytest.raises(KeyboardInterrupt):
            beside.run(lambda: ran.append(1))
    beside.finish()
    assert ran == [1]


def test_signals_are_not_delivered_to_the_thread() -> None:
    beside, masks = Background(), []
    beside.run(lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    beside.finish()
    assert {signal.SIGINT, signal.SIGTERM} <= masks[0]


def test_a_forked_child_starts_without_the_calls_of_the_parent(tmp_path: Path) -> None:
    release = threading.Event()
    background.run(lambda: release.wait(30) and None)
    background.run((tmp_path / "of the parent").touch)
    background._lock.acquire()  # as the thread may hold it at this very moment
    try:

        def work() -> None:
            (tmp_path / "of the parent").unlink(missing_ok=True)
            background.run((tmp_path / "of the child").touch)
            background.finish()
            assert not (tmp_path / "of the parent").exists()

        assert in_child(work) == 0
    finally:
        background._lock.release()
        release.set()
        background.finish()
    assert (tmp_path / "of the child").exists()
    assert (tmp_path / "of the parent").exists()


def test_the_interpreter_waits_for_running_calls(tmp_path: Path, run_python) -> None:
    run_python(f"""
import time
from pathlib import Path
from dagster_dataops.foundation.concurrency.background import background
def work():
    time.sleep(0.3)
    Path({str(tmp_path / "done")!r}).touch()
background.run(work)
""")
    assert (tmp_path / "done").exists()


def test_the_number_of_the_thread_is_the_kernels() -> None:
    beside, numbers = Background(), []
    release = threading.Event()
    beside.run(lambda: numbers.append(threading.get_native_id()) or (release.wait(30) and None))
    wait_until(lambda: bool(numbers), 10, "the thread")
    assert beside.native_id == numbers[0] != os.getpid()
    release.set()
    beside.finish()


def test_a_thread_that_has_just_ended_is_still_known() -> None:
    numbers: list[int] = []
    background.run(lambda: numbers.append(threading.get_native_id()))
    background.finish()
    assert background.native_id is None
    assert set(numbers) <= native_ids()


def test_the_end_of_the_function_is_the_end() -> None:
    go = threading.Event()
    thread = WaitableThread(partial(go.wait, 30), "waits")
    thread.start()
    assert not thread.wait(0.01)
    assert not thread.ended
    go.set()
    assert thread.wait(30)
    assert thread.ended


def test_a_function_that_raises_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail() -> None:
        raise ValueError

    thread = WaitableThread(fail, "fails")
    thread.start()
    assert thread.wait(30)


class Interrupt(BaseException):
    """Raised by a signal handler."""


def test_an_interrupted_wait_leaves_a_running_thread_running() -> None:
    def interrupt(*_: Any) -> None:
        raise Interrupt

    go = threading.Event()
    thread = WaitableThread(partial(go.wait, 30), "waits")
    thread.start()
    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGUSR1])
    try:
        sender.start()
        with pytest.raises(Interrupt):
            thread.wait(30)
        assert not thread.ended
    finally:
        signal.signal(signal.SIGUSR1, before)
        go.set()
        sender.join()
    assert thread.wait(30)


@pytest.fixture
def waiting() -> Iterator[int]:
    """Yield the native id of a thread that waits as long as the test runs."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    end.set()
    thread.join()


def test_a_process_with_another_thread_may_not_be_forked(waiting: int) -> None:
    assert not may_fork()


def test_a_waiting_thread_can_be_ignored(waiting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_safety, "_waiting", [*fork_safety._waiting])
    register_waiting_threads(lambda: {waiting})
    assert may_fork()


def test_a_process_with_busy_threads_is_never_forked() -> None:
    wait_until(may_fork, 10, "the threads of earlier tests are gone")
    with busy_threads():
        assert not may_fork()
    wait_until(may_fork, 10, "the kernel has forgotten the threads")


def test_threads_can_be_listed_only_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_safety.sys, "platform", "darwin")
    assert not may_fork()


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    """Yield the thresholds; restore them whatever a test does."""
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_garbage_is_collected_rarely_in_the_block_and_as_before_after_it(
    usual: tuple[int, int, int],
):
    with pytest.raises(KeyError), collected_rarely():
        assert gc.get_threshold() == (20_000, *usual[1:])
        raise KeyError
    assert gc.get_threshold() == usual


def test_the_last_of_overlapping_blocks_restores_the_thresholds(usual: tuple[int, int, int]):
    first, second = ExitStack(), ExitStack()
    first.enter_context(collected_rarely())
    second.enter_context(collected_rarely())
    first.close()
    assert gc.get_threshold() == (20_000, *usual[1:])
    second.close()
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("own", [(0, 10, 10), (50_000, 10, 10)])
def test_a_collector_that_is_off_or_rarer_stays_so(
    usual: tuple[int, int, int], own: tuple[int, int, int]
):
    gc.set_threshold(*own)
    with collected_rarely():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


class EndOfRun(BaseException):
    """Ends a run."""


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, EndOfRun)


def _answers(*steps: Any) -> Steps[list[Any]]:
    """Return what each step returned, or the name of the exception that it raised."""
    found: list[Any] = []
    for step in steps:
        try:
            found.append((yield step))
        except StepError as failed:
            found.append(type(failed.error).__name__)
    return found


def _raise(error: BaseException) -> Any:
    raise error


def _run_async(steps: Steps[Any], do: Callable[[Any], Any]) -> Any:
    async def awaited(step: Any) -> Any:
        await asyncio.sleep(0)
        return do(step)

    return asyncio.run(run_steps_async(steps, awaited, _is_interrupt))


def _run(steps: Steps[Any], do: Callable[[Any], Any]) -> Any:
    return run_steps(steps, do, _is_interrupt)


@pytest.mark.parametrize("run", [_run, _run_async])
def test_steps_are_sent_what_they_returned_and_an_interrupt_ends_the_run(run: Any) -> None:
    assert run(_answers(1, 2, 3), lambda number: 10 * number) == [10, 20, 30]
    assert run(_answers(), _raise) == []
    assert _run(_answers(StopIteration()), _raise) == ["StopIteration"]
    with pytest.raises(EndOfRun):
        run(_answers(1), lambda _: _raise(EndOfRun()))


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), GeneratorExit()])
@pytest.mark.parametrize("run", [_run, _run_async])
def test_a_step_that_raises_is_thrown_and_the_run_goes_on(run: Any, error: BaseException) -> None:
    def do(step: Any) -> Any:
        return _raise(error) if step == "bad" else step

    found = run(_answers("bad", "good", "bad"), do)
    assert found == [type(error).__name__, "good", type(error).__name__]


def _made(path: Path) -> dict[str, object]:
    """Run a file as a script runs: its functions cannot be imported."""
    path.write_text(
        "def outer(value):\n"
        "    inner = lambda: 1 / value\n"
        "    return inner()\n"
        "class Divided:\n"
        "    def by(self, value):\n"
        "        return outer(value)\n"
    )
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(path.read_text(), path, "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize("name", ["outer", "Divided"])
def test_code_that_is_sent_keeps_its_file_for_tracebacks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "script.py"
    sent = pickle.loads(pickled(_made(path)[name]))
    with pytest.raises(ZeroDivisionError) as caught:
        (sent if name == "outer" else sent().by)(0)
    shown = "".join(traceback.format_exception(caught.value))
    assert f'File "{path}", line 2' in shown  # of the nested function, too
    assert "inner = lambda: 1 / value" in shown


def test_a_new_interpreter_runs_code_that_was_sent(tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(pickled(_made(tmp_path / "script.py")["outer"]))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'sent')!r}, 'rb'))(4))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "0.25\n"


def _files(root: Path, files: dict[str, str]) -> tuple[Path, Path]:
    """Write the files of control groups; return where membership and hierarchies are."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "membership", root / "cgroup"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, math.inf),
        ({"membership": "0::/\n"}, math.inf),
        ({"membership": "0::/\n", "cgroup/cpu.max": "max 100000\n"}, math.inf),
        ({"membership": "0::/\n", "cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"membership": "0::/a/b\n", "cgroup/a/b/cpu.max": "400000 100000\n"}, 4),
        (
            {
                "membership": "0::/a/b\n",
                "cgroup/a/b/cpu.max": "400000 100000\n",
                "cgroup/a/cpu.max": "50000 100000\n",
            },
            0.5,
        ),
        ({"membership": "0::/../x\n", "cgroup/cpu.max": "300000 100000\n"}, 3),
        (
            {
                "membership": "3:memory:/m\n2:cpu,cpuacct:/docker/1\n1:name=systemd:/\n",
                "cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
                "cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            2.5,
        ),
        (
            {
                "membership": "1:cpu:/job\n0::/\n",
                "cgroup/cpu/job/cpu.cfs_quota_us": "-1\n",
                "cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            math.inf,
        ),
        ({"membership": "0::/\n", "cgroup/cpu.max": "nonsense\n"}, math.inf),
    ],
)
def test_the_least_quota_of_all_groups_counts(
    tmp_path: Path, files: dict[str, str], expected: float
) -> None:
    assert cores.quota(*_files(tmp_path, files)) == expected


@pytest.mark.parametrize(("allowed", "workers"), [("50000", 1), ("100000", 1), ("max", None)])
def test_a_quota_limits_the_default_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, workers: int | None
) -> None:
    files = {"membership": "0::/\n", "cgroup/cpu.max": f"{allowed} 100000\n"}
    membership, hierarchies = _files(tmp_path, files)
    monkeypatch.setattr(cores, "_MEMBERSHIP", membership)
    monkeypatch.setattr(cores, "_HIERARCHIES", hierarchies)
    cores._quota.cache_clear()
    try:
        expected = workers or len(os.sched_getaffinity(0))
        assert MODES["process"].default_workers() == cores.usable_cores() == expected
    finally:
        cores._quota.cache_clear()


def test_the_lock_is_held_in_the_block_and_given_up_after_an_error(tmp_path: Path):
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    with pytest.raises(KeyError), locked(descriptor):
        with unused(path) as free:
            assert not free
        raise KeyError
    with unused(path) as free:
        assert free
    os.close(descriptor)


def test_a_lock_at_once_is_refused_while_another_opening_has_it(tmp_path: Path):
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    assert lock_at_once(first)
    assert not lock_at_once(second)
    os.close(first)
    assert lock_at_once(second)
    os.close(second)


def test_nothing_is_unused_on_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with unused(tmp_path) as free:
        assert not free
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="locks"):
        lock_at_once(descriptor)
    os.close(descriptor)


def test_a_link_is_not_followed(tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(OSError, match="link"), unused(link):
        pytest.fail("it was opened")


@given(st.floats(0.001, 10), st.floats(0.1, 100), st.integers(1, 10_000))
def test_a_pause_is_at_least_half_of_what_doubling_gives(
    first: float, longest: float, number: int
) -> None:
    most = min(first * 2.0 ** min(number - 1, 100), longest)
    assert most / 2 <= Backoff(first, longest).pause(number) <= most


def test_callers_do_not_pause_equally_long() -> None:
    assert len({Backoff(1.0, 60.0).pause(3) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("limit", "pauses", "expected"),
    [
        (0, (), [0.0] * 7),
        (1, (), [STOP] * 7),
        (3, (), [0.0, 0.0, STOP, 0.0, 0.0, STOP, 0.0]),
        (2, (1.0, 4.0), [0.0, 1.0, 0.0, 4.0, 0.0, STOP, 0.0]),
    ],
)
def test_each_row_of_failures_pauses_the_calls_until_the_last_one_stops_them(
    limit: int, pauses: tuple[float, ...], expected: list[float]
) -> None:
    row = FailureRow(limit, pauses)
    assert [row.failed() for _ in range(7)] == expected


def test_a_success_begins_again() -> None:
    row = FailureRow(2, (1.0,))
    assert [row.failed(), row.failed()] == [0.0, 1.0]
    row.succeeded()
    assert [row.failed(), row.failed(), row.failed(), row.failed()] == [0.0, 1.0, 0.0, STOP]


def test_kinds_of_failures_are_counted_apart() -> None:
    row = FailureRow(2)
    assert [row.failed("a"), row.failed("b"), row.failed("a")] == [0.0, 0.0, STOP]
