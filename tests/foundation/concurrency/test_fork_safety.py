import threading
from collections.abc import Iterator

import pytest

from dagster_dataops.foundation.concurrency import fork_safety
from dagster_dataops.foundation.concurrency.fork_safety import may_fork, register_waiting_threads
from tests.faults.crashing import wait_until
from tests.faults.forking import busy_threads


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


def test_a_process_with_a_single_thread_may_be_forked() -> None:
    wait_until(may_fork, 10, "the threads of earlier tests are gone")


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
