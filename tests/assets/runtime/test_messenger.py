"""What is told beside the work: in order, never in its way, whatever the database does."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from dagster_dataops.assets.runtime.messenger import Messenger


@pytest.fixture
def another_thread() -> Iterator[None]:
    """A thread beside the main one, as every process that Dagster started has."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("another_thread")
def test_a_call_that_hangs_holds_up_nobody_and_those_after_it_wait() -> None:
    messenger, goes_on, told = Messenger(), threading.Event(), list[str]()
    messenger.send(goes_on.wait)
    messenger.send(lambda: told.append("second"))
    assert messenger.busy
    assert told == []
    goes_on.set()
    assert messenger.wait(10)
    assert told == ["second"]
    assert not messenger.busy


@pytest.mark.usefixtures("another_thread")
def test_calls_are_made_in_order_by_a_thread_that_takes_no_signals_and_ends() -> None:
    messenger, told = Messenger(), list[int]()
    threads: set[threading.Thread] = set()
    masks = []

    def call(number: int) -> Callable[[], None]:
        def tell() -> None:
            told.append(number)
            threads.add(threading.current_thread())
            masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))

        return tell

    for number in range(100):
        messenger.send(call(number))
    assert messenger.wait(10)
    assert told == list(range(100))
    assert threading.main_thread() not in threads
    assert all({signal.SIGINT, signal.SIGTERM} <= mask for mask in masks)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.usefixtures("another_thread")
def test_who_finishes_waits_so_long_and_drops_the_rest() -> None:
    messenger, goes_on, told = Messenger(), threading.Event(), list[str]()
    messenger.send(goes_on.wait)
    messenger.send(lambda: told.append("too late"))
    assert not messenger.wait(0.01)
    messenger.finish(0.01)
    goes_on.set()
    assert messenger.wait(10)
    assert told == []


@pytest.mark.usefixtures("another_thread")
def test_a_call_that_fails_is_logged_and_the_next_one_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away() -> None:
        msg = "the database is away"
        raise OSError(msg)

    messenger, told = Messenger(), list[str]()
    with caplog.at_level(logging.WARNING, "dagster_dataops"):
        messenger.send(away)
        messenger.send(lambda: told.append("next"))
        assert messenger.wait(10)
    assert told == ["next"]
    assert caplog.messages == ["Could not send to Dagster: OSError: the database is away"]


def test_a_process_of_one_thread_stays_one_that_can_fork(run_python: Callable[..., str]) -> None:
    printed = run_python(
        """
import threading
from dagster_dataops.assets.runtime.messenger import Messenger

messenger = Messenger()
messenger.send(lambda: print("told by", threading.current_thread().name))
print("threads", threading.active_count(), "busy", messenger.busy)
"""
    )
    assert printed == "told by MainThread\nthreads 1 busy False\n"


@pytest.mark.usefixtures("another_thread")
def test_waiting_for_nothing_takes_no_time() -> None:
    began = time.monotonic()
    assert Messenger().wait(60)
    assert time.monotonic() - began < 60
