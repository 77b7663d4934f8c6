"""Time limits in thread mode: calls are made in threads that can be left behind.

Nothing can end a thread, so whoever waits for a call must not be the one who makes it. Each
worker has a thread that makes its calls; one that is overdue is left to itself, its outcome, if
any, is thrown away, and the next call is made in a new thread.
"""

import gc
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

from dagster_dataops.execution.timeouts.record_timeout import Forward, RecordTimeout, Stuck
from dagster_dataops.records import Record

_STACK_BYTES: Final = 1 << 20
_STACK_SIZE_LOCK: Final = threading.Lock()
_LOOKING: Final = threading.Lock()


def start_thread(thread: threading.Thread) -> None:
    """Start a thread with a small stack: a thousand of them must not reserve 8 GB."""
    with _STACK_SIZE_LOCK:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)


class _Answer(NamedTuple):
    returned: object = None
    raised: BaseException | None = None


class CallLimit:
    """Has a thread make one worker's calls, and waits for each no longer than the limit.

    Args:
        seconds: How long a call may take.
        stuck: Where calls are noted that do not return.
    """

    def __init__(self, seconds: float, stuck: Stuck) -> None:
        self._seconds = seconds
        self._stuck = stuck
        self._caller: _Caller | None = None

    def around(self, forward: Forward) -> Forward:
        """Return ``forward`` with the time limit."""

        def limited(record: Record) -> object:
            caller = self._caller
            if caller is None:
                caller = self._caller = _Caller(forward, self._stuck)
            try:
                answer = caller.call(record, self._seconds)
            except Empty:
                self._caller = None
                error = RecordTimeout(self._seconds)
                error.add_note(caller.abandon())
                raise error from None
            if answer.raised is not None:
                raise answer.raised
            return answer.returned

        return limited

    def close(self) -> None:
        """End the thread, which is idle now."""
        if self._caller is not None:
            self._caller.dismiss()


class _Caller:
    """The thread that makes calls, until it is dismissed or left behind."""

    def __init__(self, forward: Forward, stuck: Stuck) -> None:
        self._forward = forward
        self._stuck = stuck
        self._records: SimpleQueue[Record | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        name = f"{threading.current_thread().name}-calls"
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        start_thread(self._thread)

    def call(self, record: Record, seconds: float) -> _Answer:
        """Return what the call came to.

        Raises:
            Empty: Nothing yet.
        """
        self._records.put(record)
        return self._answers.get(timeout=seconds)

    def abandon(self) -> str:
        """Leave the thread to itself; it ends when its call does. Returns where it is."""
        where = _whereabouts(self._thread)
        try:
            self._stuck.add(self)
        finally:
            self._records.put(None)
        return where

    def dismiss(self) -> None:
        """End the thread once its calls are made."""
        self._records.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (record := self._records.get()) is not None:
            try:
                answer = _Answer(self._forward(record))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                answer = _Answer(raised=error)
            self._answers.put(answer)
            del record, answer  # nothing is kept alive while waiting
        self._stuck.discard(self)


def _whereabouts(thread: threading.Thread) -> str:
    """Return where in the operator a thread is, as a traceback has it."""
    with _LOOKING, _no_collection():
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - documented, see sys
    lines = traceback.format_stack(frame) if frame is not None else []
    own = [place for place, line in enumerate(lines) if f'"{__file__}"' in line]
    return "The call was given up here:\n" + "".join(lines[own[-1] + 1 if own else 0 :])


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage in the block.

    CPython holds the lock of its list of threads while it looks at their frames, and makes objects
    meanwhile. A collection that is due then, and finds a `threading.local`, waits for that very
    lock, with the interpreter's, for good.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
