"""``prefetch``: read items ahead in a thread."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryStage
from dagster_dataops.streams.core.transparent import TransparentCursor

_END: Final = object()
_POLL_SECONDS: Final = 0.05


@dataclass(eq=False)
class Prefetch(UnaryStage):
    """Yield the same items and read up to ``num_examples`` ahead; 0 turns that off."""

    name: ClassVar[str] = "prefetch"
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    num_examples: int

    @override
    def open(self, context: ReadContext) -> Cursor:
        if self.num_examples:
            return super().open(context)
        return TransparentCursor(self.upstream.open(context))

    @override
    def options(self) -> dict[str, Any]:
        return {"on": bool(self.num_examples)}

    @override
    def begin(self, context: ReadContext) -> None:
        self._reader: _PrefetchThread | None = None

    @override
    def reset(self) -> None:
        if self._reader is not None:
            self._reader.stop()
            self._reader = None

    @override
    def states_before(self) -> list[State] | None:
        return None if self._reader is None else [self._state_after]

    @override
    def items(self) -> Iterator[Any]:
        self.reset()
        self._state_after = self.source.state()
        reader = self._reader = _PrefetchThread(self.source, self.num_examples)
        following = reader.next
        try:
            while True:
                item, error, state_after = following()
                if error is not None:
                    raise error
                self._state_after = state_after
                if item is _END:
                    self.reset()
                    return
                yield item
        finally:
            reader.stop()


class _PrefetchThread:
    """A thread that reads a cursor into a queue; an error follows the items before it."""

    def __init__(self, upstream: Cursor, count: int) -> None:
        self._upstream = upstream
        self._queue: Queue[tuple[Any, BaseException | None, State]] = Queue(count)
        self.next = self._queue.get
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="stream-prefetch", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        state, put = self._upstream.state, self._put
        try:
            for item in self._upstream.items():
                if not put((item, None, state())):
                    return
            put((_END, None, state()))
        except BaseException as error:  # noqa: BLE001 - raised again in the reading thread
            self._put((None, error, None))

    def _put(self, entry: tuple[Any, BaseException | None, State]) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def stop(self) -> None:
        """Stop the thread and drop the items that it read ahead."""
        self._stopped.set()
        try:
            while True:
                self._queue.get_nowait()
        except Empty:
            pass
        if self._thread is not threading.current_thread():
            self._thread.join()
