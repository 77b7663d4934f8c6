"""Handle the items on which a stage fails: raise the error, skip the item or quarantine it.

The failure counts are part of the state. A resumed stream can read items again that it had
prefetched before; their failures are counted and stored only once.

A stage that fails on many items in a row ends the stream: a mistake in the code, not in the data.
Only an `Exception` is a failure. An interrupt (``KeyboardInterrupt``, ``SystemExit``) ends the
stream. What a signal handler raises while a function runs looks like an error of that function, so
it is a failure, unless it is such an interrupt.
"""

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from dagster_dataops.errors import DataPipelineError, StreamSourceError
from dagster_dataops.foundation.concurrency.file_lock import locked
from dagster_dataops.records import encode_anything, text_of

OnError: TypeAlias = Literal["raise", "skip", "quarantine"]
OnFailure: TypeAlias = Callable[[Exception, Any], None]
POLICIES: Final = ("raise", "skip", "quarantine")
MAX_KEPT: Final = 1000  # in memory; the file has no limit
FAILURE_TOLERANCE: Final = 100  # the default
FAILED: Final = object()  # what a stage made of an item on which it failed
UNSEEN: Final = object()  # of an item that another process was given

_LOGGER: Final = logging.getLogger(__name__)


class SkipItem(Exception):  # noqa: N818 - it is no error
    """Raised by a function of a stage to leave an item out: it counts as no failure."""


class _LastFailed:
    """The item that failed last in this process."""

    item: Any = None


_LAST: Final = _LastFailed()


def get_last_failed_example() -> Any:
    """Return the item on which a stage of a stream failed last in this process; ``None`` before.

    It is also set for an item that was skipped or quarantined. Other than in fairseq2, it is shared
    by all threads, since streams are also read ahead in threads.

    Example:
        >>> stream = read_sequence([1, 0]).map(lambda number: 1 / number).and_return()
        >>> try:
        ...     list(stream)
        ... except ZeroDivisionError:
        ...     print(get_last_failed_example())
        0
    """
    return _LAST.item


def check_unbroken(what: str, failure: BaseException | None) -> None:
    """Raise `DataPipelineError` if an earlier error has ended ``what``, a stream or a loader."""
    if failure is not None:
        msg = (
            f"an earlier {type(failure).__name__} has ended the {what}: {failure}; build it again, "
            "and load a state to go on from there"
        )
        raise DataPipelineError(msg)


class FailureHandler:
    """Count, log and store the failures of one stream.

    Args:
        on_error: ``raise``, ``skip`` or ``quarantine``.
        max_errors: The largest number of failures to accept; ``None`` for no limit.
        path: The jsonl file for quarantined items; ``None`` to hold them in memory only. Several
            ranks can share it.
        tolerance: The number of items in a row on which a stage may fail; ``None`` for no limit.
        share: The share of the items that this stream reads, and the number of shares.

    Attributes:
        kept: The failed items in quarantine, up to `MAX_KEPT`.
        counters: The counters of the open stages, in the order in which they were opened.
        hide: Hides secrets in the texts of errors.
        on_failure: Is called once with the error and the item of each failure that is skipped; what
            it raises ends the stream.
    """

    hide: Callable[[str], str] = staticmethod(str)
    on_failure: OnFailure | None = None

    def __init__(
        self,
        on_error: OnError = "raise",
        max_errors: int | None = None,
        path: Path | None = None,
        tolerance: int | None = FAILURE_TOLERANCE,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.on_error = on_error
        self.kept: list[dict[str, Any]] = []
        self.max_errors = max_errors
        self._path = path
        self.tolerance = tolerance
        self._share = share
        self.counters: list[FailureCounter] = []
        self._stored: dict[int, int] = {}

    def counter(self, stage: str) -> "FailureCounter":
        """Return a new counter for one stage."""
        self.counters.append(FailureCounter(self, len(self.counters), stage))
        return self.counters[-1]

    @property
    def count(self) -> int:
        """The number of failed items."""
        return sum(counter.count for counter in self.counters)

    def state(self) -> list[int]:
        """Return the number of logged and stored failures of each stage."""
        return [self._stored.get(number, 0) for number in range(len(self.counters))]

    def restore(self, state: Any) -> None:
        """Drop the failures of this share of the items that were stored after ``state`` was taken.

        Those of other ranks, which may share the file, stay.
        """
        self._stored = dict(enumerate(state))
        self.kept = [failure for failure in self.kept if self._stays(failure)]
        if self._path is not None and self._path.exists():
            self._drop_unseen(self._path)

    def _drop_unseen(self, path: Path) -> None:
        """Remove entries newer than the state, and torn lines, from the quarantine file."""
        with _locked_file(path) as file:
            file.seek(0)
            text = file.read()
            lines = text.splitlines(keepends=True)
            kept = b"".join(line for line in lines if self._line_stays(line))
            if kept != text:
                draft = path.with_name(f"{path.name}.draft")
                draft.write_bytes(kept)
                draft.replace(path)

    def _line_stays(self, line: bytes) -> bool:
        try:
            return line.endswith(b"\n") and self._stays(json.loads(line))
        except ValueError:  # a process was killed while it wrote this line
            return False

    def _stays(self, entry: dict[str, Any]) -> bool:
        stored = entry["number"] <= self._stored.get(entry["counter"], 0)
        return bool(stored or not self._is_own(entry))

    def _is_own(self, entry: dict[str, Any]) -> bool:
        """Return whether an entry is of this share; those of another number are divided up."""
        remainder, number = self._share
        rank, ranks = entry.get("rank", 0), entry.get("ranks", 1)
        return bool(rank == remainder if ranks == number else rank % number == remainder)

    def handle(self, counter: "FailureCounter", item: Any, error: Exception) -> None:
        """Count a failure, log it and store it.

        Raises:
            Exception: ``error`` itself, with ``on_error="raise"``.
            DataPipelineError: There are more than ``max_errors`` failures.
        """
        _LAST.item = item
        if self.on_error == "raise":
            raise _error_to_raise(error, counter.stage)
        counter.count += 1
        if counter.count > self._stored.get(counter.number, 0):
            self._store(counter, item, error)
            self._stored[counter.number] = counter.count  # states count stored failures only
        if self.max_errors is not None and self.count > self.max_errors:
            msg = (
                f"failed items: {self.count:,}, more than max_errors={self.max_errors}; the last: "
                f"stage {counter.stage}: {type(error).__name__}: {text_of(error)}"
            )
            raise DataPipelineError(msg) from error

    def _store(self, counter: "FailureCounter", item: Any, error: Exception) -> None:
        kind, message = self.hide(type(error).__name__), self.hide(text_of(error))
        _LOGGER.warning("stage %s: skipped: %s: %s", counter.stage, kind, message)
        if self.on_failure is not None:
            self.on_failure(error, item)
        if self.on_error != "quarantine":
            return
        entry = {
            "counter": counter.number,
            "number": counter.count,
            "stage": counter.stage,
            "exception": kind,
            "message": message,
            "item": item,
        }
        rank, ranks = self._share
        if ranks > 1:
            entry |= {"rank": rank, "ranks": ranks}
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _locked_file(self._path) as file:
                file.write(_after_torn_line(file) + encode_anything(entry))
        if len(self.kept) < MAX_KEPT:
            self.kept.append(entry)


@contextmanager
def _locked_file(path: Path) -> Iterator[BinaryIO]:
    """Open a quarantine file to read and to append, locked against other ranks."""
    while True:
        with path.open("ab+") as file:
            try:
                lock = locked(file.fileno())
                lock.__enter__()
            except OSError:  # a file system without locks
                yield file
                return
            with lock:
                if _is_at(path, file):  # else another rank has replaced it meanwhile
                    yield file
                    file.flush()  # before others have the lock
                    return


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _after_torn_line(file: BinaryIO) -> bytes:
    """Return what ends the last line, if a process was killed while it wrote it."""
    end = file.seek(0, os.SEEK_END)
    if not end:
        return b""
    file.seek(end - 1)
    return b"" if file.read(1) == b"\n" else b"\n"


def _error_to_raise(error: Exception, stage: str) -> Exception:
    if isinstance(error, StopIteration):  # would end the stream silently
        raised = DataPipelineError(f"the function of stage {stage} raised StopIteration")
        raised.__cause__ = error
        return raised
    if not isinstance(error, StreamSourceError):
        error.add_note(f"(stage {stage} of a stream; on_error='skip' or 'quarantine' continues)")
    return error


class FailureCounter:
    """The failures of one stage.

    Attributes:
        count: The number of failures up to the position of the stage.
        in_a_row: How many items have failed in a row, up to the last failure.
        before: What the stage made of the item before the last failure, or of the last item that
            it was given: `FAILED`, `UNSEEN` or anything else.
    """

    def __init__(self, failures: FailureHandler, number: int, stage: str) -> None:
        self._failures = failures
        self.number, self.stage = number, stage
        self.count = self.in_a_row = 0
        self.before: object = None
        self._first: Exception | None = None  # of those in a row

    @property
    def raises(self) -> bool:
        """Whether the first failure ends the stream."""
        return self._failures.on_error == "raise"

    def handle(self, item: Any, error: Exception, before: object = None) -> object:
        """Handle one failure, and return `FAILED`; an item that is skipped is none.

        ``before`` is what the stage made of the item before. If the failure ends the stream, its
        error is raised.
        """
        if isinstance(error, SkipItem):
            return None
        self.in_a_row = self.in_a_row + 1 if before is FAILED else 1
        if self.in_a_row == 1:
            self._first = error
        self.before = before
        self._failures.handle(self, item, error)
        tolerance = self._failures.tolerance
        if tolerance is not None and self.in_a_row >= tolerance:
            raise self._too_many() from self._first
        return FAILED

    def _too_many(self) -> DataPipelineError:
        first = self._first
        return DataPipelineError(
            f"stage {self.stage} failed on {self.in_a_row:,} items in a row, first with "
            f"{type(first).__name__}: {text_of(first)}. Correct its function; if so many items can "
            "be bad, set failure_tolerance to a larger number, or to None for no limit"
        )

    def end(self, last: object) -> None:
        """Note what the stage made of the last item."""
        self.before = last if last is FAILED or last is UNSEEN else None
