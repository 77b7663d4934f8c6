"""BatchLoop: run byte ranges of the input in batches.

Every batch is a span, so a resumed run repeats whole batches.
"""

from typing import Any

from dagster_dataops.datasets.batches import batches_of
from dagster_dataops.datasets.lines import Interval, Line
from dagster_dataops.execution.records.calls import Calls
from dagster_dataops.execution.records.range_loop import RangeLoop, Write
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.span_draft import span_of
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.range_source import Readable


class BatchLoop(RangeLoop):
    """Runs ranges of one input in batches. The arguments are those of `RangeLoop`."""

    def __init__(self, calls: Calls, source: Readable, write: Write, **options: Any) -> None:
        super().__init__(calls, source, write, **options)
        self._call = calls.call
        self._size = calls.settings.batch_size
        self._begun: int | None = None  # end of the last batch that was begun in this range

    @override
    def _run_range(self, start: int, end: int, *, one_by_one: bool) -> Failure | None:
        size = 1 if one_by_one else self._size
        try:
            for batch in batches_of(self._source, [Interval(start, end)], start, size):
                if not self._begin(batch):
                    break
                failure = self._run_batch(batch)
                if failure is not None:
                    return failure
                self.shorten_if_late()
        finally:
            self._begun = None
        return None

    def _begin(self, batch: list[Line]) -> bool:
        """Begin a batch, unless it was left to other workers."""
        with self._lock:
            if batch[0].start >= self._end:
                return False
            self._begun = batch[-1].end
        if self._announce is not None:
            self._announce(batch[0].start)
        return True

    def _run_batch(self, batch: list[Line]) -> Failure | None:
        """Run a batch; return the failure that ends the range."""
        calls = self._calls
        try:
            finished = self._call(batch)
        finally:
            self._fork_guard.check()
        for line, outcome, *_ in finished:
            if isinstance(outcome, Failure) and not calls.settings.ignore_errors:
                return outcome._replace(offset=line.start)
            calls.breaker.count(outcome, line.start)
        for part in [[outcome] for outcome in finished] if self._apart else [finished]:
            name = calls.operator.__dataops__.spec.qualified_name
            self._write(span_of(part, name, check_input=self._checks_input))
        return calls.breaker.failure

    @override
    def _begun_until(self) -> int | None:
        return self._begun
