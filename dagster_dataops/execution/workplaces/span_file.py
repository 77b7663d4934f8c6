"""`SpanFile` and `SpanReader`: hand over finished spans from one process to another by a file."""

import os
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.errors import DataOpsError, StorageError
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.sink import Sink
from dagster_dataops.foundation.override import override

_LENGTH_BYTES: Final = 8
_HEAD_BYTES: Final = _LENGTH_BYTES + 4  # length and checksum of an entry
_SPAN, _FAILURE, _ERROR, _DONE = "span", "failure", "error", "done"  # kinds of entries


class SpanFile(Sink):
    """Writes the finished spans of a process elsewhere to a file, for a `SpanReader`.

    It is a context manager around a `range_worker`. An exception in the block is written to the
    file and not raised again: the reader raises it.

    Args:
        path: The file; one that exists is replaced.
        tick: Called at least ten times a second. It may end the process, for example if there is
            no sign of life of the run.
    """

    def __init__(self, path: Path, tick: Callable[[], object]) -> None:
        super().__init__(path.parent)
        self._path, self._tick = path, tick

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        with self._file:
            if isinstance(error, _FailedError):
                failure = error.failure._replace(error=None)  # it may not survive pickling
                outage = isinstance(error, _OutageError)
                self._send(_FAILURE, (failure, error.last_failed, outage))
            elif isinstance(error, Exception):
                self._send(_ERROR, _pickled(error))
            elif error is None:
                self._send(_DONE, None)
        return isinstance(error, Exception)

    def _send(self, kind: str, value: object) -> None:
        data = pickle.dumps((kind, value))
        head = len(data).to_bytes(_LENGTH_BYTES, "little") + zlib.crc32(data).to_bytes(4, "little")
        self._file.write(head + data)
        self._file.flush()

    @override
    def write(self, span: FinishedSpan) -> None:
        self._send(_SPAN, span)

    @override
    def tick(self) -> None:
        self._tick()

    @override
    def error_of(self, failure: Failure) -> DataOpsError:
        return _FailedError(failure, sorted(self.last_failed or ()))

    @override
    def outage_of(self, failure: Failure) -> DataOpsError:
        return _OutageError(failure, sorted(self.last_failed or ()))

    @override
    def take_segment_number(self) -> int:  # the process of the run has the segments
        return 0

    @override
    def journal(self, segment: int, offset: int, spans: Any, notes: Sequence[Any] = ()) -> None:
        """Do nothing: the process of the run has the journal."""

    @override
    def check_input_unchanged(self) -> None:
        """Do nothing: the process of the run does."""


def _pickled(error: Exception) -> bytes:
    """Return an exception as bytes; one that does not survive pickling as its text."""
    with suppress(Exception):
        data = pickle.dumps(error)
        pickle.loads(data)  # noqa: S301 - made here
        return data
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


class _FailedError(DataOpsError):
    """A failure that ends the range; the reader makes the error of it."""

    sentence = "a record failed"
    failure: Failure
    last_failed: list[int]


class _OutageError(_FailedError):
    """A failure that ends the range because every record fails."""


class SpanReader:
    """Reads a `SpanFile` in the process of the run, also while it is written.

    Files of other users are refused: they are pickles, which run code.

    Args:
        path: The file, which may not exist yet.
        interval: The range that is run elsewhere.

    Attributes:
        path: The file.
        start: Where the part of the range begins that has no outcome yet.
        end: The end of the range.
        done: Whether the whole range has been run.
    """

    def __init__(self, path: Path, interval: Interval) -> None:
        self.path = path
        self.start, self.end = interval
        self.done = False
        self._position = 0

    def read(self, sink: Sink) -> None:
        """Hand the spans that are new in the file over to the sink of the run.

        Raises:
            DataOpsError: The error of a record that ends the run.
            StorageError: The file belongs to another user.
            Exception: Another error that ended the range.
        """
        for kind, value in self._entries():
            if kind == _SPAN:
                sink.write(value)
                self.start = value.span.start + value.span.length
            elif kind == _FAILURE:
                failure, last_failed, outage = value
                sink.add_last_failed(last_failed)
                raise sink.outage_of(failure) if outage else sink.error_of(failure)
            elif kind == _ERROR:
                raise pickle.loads(value)  # noqa: S301 - from a process of this user
            self.done = kind == _DONE or self.start == self.end

    def _entries(self) -> Iterator[tuple[str, Any]]:
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            if owner != os.geteuid():
                reason = f"it belongs to user {owner}; run all processes as one user"
                raise StorageError(str(self.path), "read the finished spans", reason)
            file.seek(self._position)
            while len(head := file.read(_HEAD_BYTES)) == _HEAD_BYTES:
                data = file.read(int.from_bytes(head[:_LENGTH_BYTES], "little"))
                if zlib.crc32(data) != int.from_bytes(head[_LENGTH_BYTES:], "little"):
                    return  # only in part
                self._position = file.tell()
                yield pickle.loads(data)  # noqa: S301 - from a process of this user
