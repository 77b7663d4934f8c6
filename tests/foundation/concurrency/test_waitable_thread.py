"""Tests of dagster_dataops.foundation.concurrency.waitable_thread."""

import os
import signal
import threading
from functools import partial
from typing import Any

import pytest

from dagster_dataops.foundation.concurrency.waitable_thread import WaitableThread


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
