"""What becomes of items on which a stage fails: raised, skipped or put into quarantine.

Failures count where they happen, and the counts are part of the state: a stream that is taken up
again, and goes once more through items that it had read ahead, counts and keeps none twice.
"""

import json
import logging
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import DataPipelineError, StreamSourceError
from dagster_dataops.records import encode_anything, text_of

OnError: TypeAlias = Literal["raise", "skip", "quarantine"]
POLICIES: Final = ("raise", "skip", "quarantine")
_MOST_KEPT: Final = 1000  # in memory; a file holds them all

_LOGGER: Final = logging.getLogger(__name__)


class Failures:
    """The failures of one stream.

    Args:
        on_error: ``raise``, ``skip`` or ``quarantine``.
        max_errors: How many may be skipped; ``None`` for any number.
        path: A jsonl file for what is put into quarantine.
    """

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
        self._counters: list[Counter] = []
        self._seen: dict[int, int] = {}

    def counter(self, stage: str) -> "Counter":
        """Return the counter of one stage."""
        self._counters.append(Counter(self, len(self._counters), stage))
        return self._counters[-1]

    @property
    def count(self) -> int:
        """How many items failed."""
        return sum(counter.count for counter in self._counters)

    def state(self) -> list[int]:
        """Return how many failures of each stage have been logged and kept."""
        return [self._seen.get(number, 0) for number in range(len(self._counters))]

    def restore(self, state: Any) -> None:
        """Forget what was kept after ``state``."""
        self._seen = dict(enumerate(state))
        self.kept = [one for one in self.kept if self._was_seen(one)]
        if self._path is not None and self._path.exists():
            self._keep_seen(self._path)

    def _keep_seen(self, path: Path) -> None:
        """Take from the file what came after the state, and a last line that a kill cut short."""
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")[:-1]
        seen = [line for line in lines if self._was_seen(json.loads(line))]
        kept = "".join(f"{line}\n" for line in seen)
        if kept != text:
            draft = path.with_name(f"{path.name}.draft")
            draft.write_text(kept, encoding="utf-8")
            draft.replace(path)

    def _was_seen(self, entry: dict[str, Any]) -> bool:
        return bool(entry["number"] <= self._seen.get(entry["counter"], 0))

    def settle(self, counter: "Counter", item: Any, error: Exception) -> None:
        """Count a failure, log and keep it.

        Raises:
            Exception: ``error`` itself, if failures are raised.
            DataPipelineError: There are too many.
        """
        if self.on_error == "raise":
            raise _as_raised(error, counter.stage)
        counter.count += 1
        if counter.count > self._seen.get(counter.number, 0):
            self._keep(counter, item, error)
            self._seen[counter.number] = counter.count  # what a state tells of has been kept
        if self._max_errors is not None and self.count > self._max_errors:
            msg = (
                f"{self.count} items have failed, and max_errors is {self._max_errors}; the last: "
                f"stage {counter.stage}: {type(error).__name__}: {text_of(error)}"
            )
            raise DataPipelineError(msg) from error

    def _keep(self, counter: "Counter", item: Any, error: Exception) -> None:
        kind, message = type(error).__name__, text_of(error)
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
        if len(self.kept) < _MOST_KEPT:
            self.kept.append(entry)


def _as_raised(error: Exception, stage: str) -> Exception:
    if isinstance(error, StopIteration):  # would pass for the end of the stream
        raised = DataPipelineError(f"the function of stage {stage} raised StopIteration")
        raised.__cause__ = error
        return raised
    if not isinstance(error, StreamSourceError):
        error.add_note(f"(stage {stage} of a stream; on_error='skip' or 'quarantine' goes on)")
    return error


class Counter:
    """The failures of one stage.

    Attributes:
        count: How many there were up to its position.
        saved: Whether the stage's state tells of them; a stage inside another's item does not.
    """

    def __init__(self, failures: Failures, number: int, stage: str) -> None:
        self._failures = failures
        self.number, self.stage = number, stage
        self.count = 0
        self.saved = failures.on_error != "raise"

    def settle(self, item: Any, error: Exception) -> None:
        """Have a failure dealt with; raises if it ends the stream."""
        self._failures.settle(self, item, error)
