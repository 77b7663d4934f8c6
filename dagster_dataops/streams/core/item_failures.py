"""Handle the items on which a stage fails: raise the error, skip the item or quarantine it.

The failure counts are part of the state. A resumed stream can read items again that it had
prefetched before; their failures are counted and stored only once.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import DataPipelineError, StreamSourceError
from dagster_dataops.records import encode_anything, text_of

OnError: TypeAlias = Literal["raise", "skip", "quarantine"]
POLICIES: Final = ("raise", "skip", "quarantine")
_MAX_KEPT: Final = 1000  # in memory; the file has no limit

_LOGGER: Final = logging.getLogger(__name__)


def check_unbroken(what: str, failure: BaseException | None) -> None:
    """Raise `DataPipelineError` if an earlier error has ended a stream or a loader.

    Args:
        what: ``stream`` or ``loader``.
        failure: The earlier error; ``None`` if there was none.
    """
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
        path: The jsonl file for quarantined items; ``None`` to hold them in memory only.

    Attributes:
        counters: The counters of the open stages, in the order in which they were opened.
        hide: Hides secrets in the texts of errors.
    """

    hide: Callable[[str], str] = staticmethod(str)

    def __init__(
        self,
        on_error: OnError = "raise",
        max_errors: int | None = None,
        path: Path | None = None,
    ) -> None:
        self.on_error = on_error
        self.kept: list[dict[str, Any]] = []
        self._max_errors = max_errors
        self._path = path
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
        """Drop the failures that were stored after ``state`` was taken."""
        self._stored = dict(enumerate(state))
        self.kept = [one for one in self.kept if self._was_stored(one)]
        if self._path is not None and self._path.exists():
            self._drop_unseen(self._path)

    def _drop_unseen(self, path: Path) -> None:
        """Remove entries newer than the state, and a torn last line, from the quarantine file."""
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")[:-1]
        seen = [line for line in lines if self._was_stored(json.loads(line))]
        kept = "".join(f"{line}\n" for line in seen)
        if kept != text:
            draft = path.with_name(f"{path.name}.draft")
            draft.write_text(kept, encoding="utf-8")
            draft.replace(path)

    def _was_stored(self, entry: dict[str, Any]) -> bool:
        return bool(entry["number"] <= self._stored.get(entry["counter"], 0))

    def settle(self, counter: "FailureCounter", item: Any, error: Exception) -> None:
        """Count a failure, log it and store it.

        Raises:
            Exception: ``error`` itself, with ``on_error="raise"``.
            DataPipelineError: There are more than ``max_errors`` failures.
        """
        if self.on_error == "raise":
            raise _error_to_raise(error, counter.stage)
        counter.count += 1
        if counter.count > self._stored.get(counter.number, 0):
            self._store(counter, item, error)
            self._stored[counter.number] = counter.count  # states count stored failures only
        if self._max_errors is not None and self.count > self._max_errors:
            msg = (
                f"failed items: {self.count:,}, more than max_errors={self._max_errors}; the last: "
                f"stage {counter.stage}: {type(error).__name__}: {text_of(error)}"
            )
            raise DataPipelineError(msg) from error

    def _store(self, counter: "FailureCounter", item: Any, error: Exception) -> None:
        kind, message = self.hide(type(error).__name__), self.hide(text_of(error))
        _LOGGER.warning("stage %s: skipped: %s: %s", counter.stage, kind, message)
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
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(encode_anything(entry))
        if len(self.kept) < _MAX_KEPT:
            self.kept.append(entry)


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
    """

    def __init__(self, failures: FailureHandler, number: int, stage: str) -> None:
        self._failures = failures
        self.number, self.stage = number, stage
        self.count = 0

    def settle(self, item: Any, error: Exception) -> None:
        """Handle one failure.

        Raises:
            Exception: The failure ends the stream.
        """
        self._failures.settle(self, item, error)
