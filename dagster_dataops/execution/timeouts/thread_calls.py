"""Time limits in thread mode: calls run in threads that can be abandoned.

A thread cannot be ended from outside. So each worker has a second thread that makes its calls. A
call that takes too long is abandoned with its thread, its outcome is ignored, and the next call is
made in a new thread.
"""

import gc
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final, NamedTuple

from dagster_dataops.execution.timeouts.record_timeout import Forward, RecordTimeout, Stuck
from dagster_dataops.operators.chains.chain_calls import blame_part_in
from dagster_dataops.operators.outcomes.record_context import Tally
from dagster_dataops.records import Record

_STACK_BYTES: Final = 1 << 20
_STACK_SIZE_LOCK: Final = threading.Lock()
_LOOKING: Final = threading.Lock()


def start_thread(thread: threading.Thread) -> None:
    """Start a thread with a small stack, because a thousand default stacks would reserve 8 GB."""
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
    """Make the calls of one worker in a thread, and wait for each up to the time limit.

    Args:
        seconds: Time limit of a call.
        stuck: Receives the calls that do not return.
        tally: Knows the time that a call waits, which does not count.
    """

    def __init__(self, seconds: float, stuck: Stuck, tally: Tally | None = None) -> None:
        self._seconds = seconds
        self._stuck = stuck
        self._tally = tally or Tally()
        self._caller: _Caller | None = None

    def around(self, forward: Forward) -> Forward:
        """Return ``forward`` with the time limit."""

        def limited(record: Record) -> object:
            caller = self._caller
            if caller is None:
                caller = self._caller = _Caller(forward, self._stuck)
            try:
                answer = caller.call(record, self._seconds, self._tally)
            except Empty:
                self._caller = None
                error = RecordTimeout(self._seconds)
                caller.abandon(error)
                raise error from None
            if answer.raised is not None:
                raise answer.raised
            return answer.returned

        return limited

    def close(self) -> None:
        """End the idle thread."""
        if self._caller is not None:
            self._caller.dismiss()


class _Caller:
    """The thread that makes calls until it is dismissed or abandoned."""

    def __init__(self, forward: Forward, stuck: Stuck) -> None:
        self._forward = forward
        self._stuck = stuck
        self._records: SimpleQueue[Record | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        name = f"{threading.current_thread().name}-calls"
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        start_thread(self._thread)

    def call(self, record: Record, seconds: float, tally: Tally) -> _Answer:
        """Return the answer of a call; raise `Empty` if it takes longer than ``seconds``."""
        self._records.put(record)
        began, left = time.monotonic(), seconds
        while True:
            try:
                return self._answers.get(timeout=left)
            except Empty:
                left = seconds - (time.monotonic() - began - tally.waited)
                if left <= 0:
                    raise

    def abandon(self, error: RecordTimeout) -> None:
        """Abandon the thread, which ends with its call; write into ``error`` where it is."""
        with _LOOKING, _no_collection():
            frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001 - see sys
        error.add_note(_whereabouts(frame))
        blame_part_in(frame, error)
        try:
            self._stuck.add(self)
        finally:
            self._records.put(None)

    def dismiss(self) -> None:
        """End the thread after its last call."""
        self._records.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (record := self._records.get()) is not None:
            try:
                answer = _Answer(self._forward(record))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                answer = _Answer(raised=error)
            self._answers.put(answer)
            del record, answer  # keep no object alive while waiting
        self._stuck.discard(self)


def _whereabouts(frame: FrameType | None) -> str:
    """Return the operator's part of a thread's stack, as in a traceback."""
    lines = traceback.format_stack(frame) if frame is not None else []
    places = [place for place, line in enumerate(lines) if f'"{__file__}"' in line]
    return "The call was given up here:\n" + "".join(lines[places[-1] + 1 if places else 0 :])


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage in the block.

    CPython holds the lock of its list of threads while it creates the list of frames. A garbage
    collection at that time that frees a `threading.local` waits for the same lock forever.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
