"""Sink: writes and journals the finished spans of an attempt."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.checkpoints.journal.segments import SegmentWriter
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.errors import DataOpsError, StorageError

if TYPE_CHECKING:
    from dagster_dataops.execution.records.record_failures import Failure


class Sink(ABC):
    """Writes and journals finished spans, and makes the error that ends the attempt.

    A finished span is written to a segment, and then journaled. From then on no kill repeats it.

    Args:
        folder: The folder of the segments.

    Attributes:
        folder: The folder of the segments.
        last_failed: After an outage: byte positions of the failed records after which none
            succeeded; ``None`` for all failed records.
        thread: The thread that runs the workplace.
        room: The most bytes of outputs of a worker process that wait to be sent; 0 for any number.
            See `await_room`.
        full: Whether so many outputs wait to be sent that no further call should begin.
    """

    room: int = 0
    full: bool = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last_failed: set[int] | None = None
        self._segment: SegmentWriter | None = None
        self._writing = threading.Lock()
        self._process = os.getpid()
        self._accepts = False
        self.thread = threading.current_thread()

    @abstractmethod
    def take_segment_number(self) -> int:
        """Return a number that no other segment of the folder has, or had."""

    @abstractmethod
    def journal(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        """Journal spans that are written; call it in one thread at a time.

        Args:
            segment: Number of the segment that holds their outputs.
            offset: Where their outputs begin there, in a row.
            spans: The spans.
            notes: Their notes; none if no span has any.
        """

    @abstractmethod
    def tick(self) -> None:
        """Do periodic work: show progress, sync, look for a stop request.

        Call it at least ten times a second, in the thread that runs the workplace.

        Raises:
            RunStoppedError: A stop was requested.
        """

    @abstractmethod
    def check_input_unchanged(self) -> None:
        """Check that the input is the same file as at the start.

        Raises:
            InputError: It is not.
        """

    @abstractmethod
    def error_of(self, failure: "Failure") -> DataOpsError:
        """Return the error for the failure that ends the attempt."""

    def outage_of(self, failure: "Failure") -> DataOpsError:
        """Return the error of an attempt that too many consecutive calls with ``failure`` end."""
        return self.error_of(failure)

    def new_segment(self) -> SegmentWriter:
        """Return the writer of a new segment."""
        return SegmentWriter(self.folder, self.take_segment_number())

    def await_room(self) -> None:  # noqa: B027 - most have room for any number
        """Wait until `full` is false, in the thread that has written a span.

        Raises:
            RunStoppedError: A stop was requested.
            StorageError: Outputs cannot be sent.
        """

    def add_last_failed(self, starts: Iterable[int]) -> None:
        """Add to `last_failed`, from any thread."""
        with self._writing:
            self.last_failed = {*(self.last_failed or ()), *starts}

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """Accept spans inside the block; refuse those of threads that outlive it."""
        self._accepts = True
        try:
            yield
        finally:
            with self._writing:
                self._accepts = False
                segment, self._segment = self._segment, None
                if segment is not None:
                    segment.close()

    def _check_writer(self) -> None:
        reason = ""
        if os.getpid() != self._process:
            reason = "it comes from another process; hand spans over in the process of the run"
        elif not self._accepts:
            reason = "the workplace that hands it over has returned"
        if reason:
            raise StorageError(str(self.folder), "write a span", reason)

    def write(self, span: FinishedSpan) -> None:
        """Write and journal a finished span; safe to call in any thread.

        Raises:
            StorageError: The disk refuses, the workplace has returned, or this is a forked process.
        """
        with self._writing:
            self._check_writer()
            self._segment = self._segment or self.new_segment()
            offset = self._segment.append(span.output, span.errors)
            self.journal(self._segment.number, offset, [span.span], [span.notes])
