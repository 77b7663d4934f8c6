import os
import signal
import threading
from pathlib import Path

import pytest

from dagster_dataops.foundation.concurrency.background import Background, background, native_ids
from tests.faults.crashing import in_child, wait_until


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
