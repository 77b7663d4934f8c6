"""BatchLoop: settle byte ranges of the input in batches, in a worker process.

Every batch is a span, so a resumed run repeats whole batches.
"""

from typing_extensions import override

from dagster_dataops.datasets.batches import batches_of
from dagster_dataops.datasets.lines import Interval, Line
from dagster_dataops.execution.records.range_loop import RangeLoop, Terms
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.settle_steps import SettleLines
from dagster_dataops.execution.records.span_draft import span_of
from dagster_dataops.places.range_source import Readable


class BatchLoop(RangeLoop):
    """Settles ranges of one input in batches.

    Args:
        settle: Settles a batch.
        source: The open input.
        terms: The options.
        size: Records a batch.
    """

    def __init__(self, settle: SettleLines, source: Readable, terms: Terms, size: int) -> None:
        super().__init__(source, terms)
        self._settle = settle
        self._size = size
        self._begun: int | None = None  # end of the last batch that was begun in this range

    @override
    def _settle_range(self, start: int, end: int, *, one_by_one: bool) -> Failure | None:
        size = 1 if one_by_one else self._size
        try:
            for batch in batches_of(self._source, [Interval(start, end)], start, size):
                if not self._begin(batch):
                    break
                failure = self._settled(batch)
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
        if self._terms.announce is not None:
            self._terms.announce(batch[0].start)
        return True

    def _settled(self, batch: list[Line]) -> Failure | None:
        """Settle a batch; return the failure that ends the range."""
        terms = self._terms
        try:
            finished = self._settle(batch)
        finally:
            self._fork_guard.check()
        for line, outcome, *_ in finished:
            if isinstance(outcome, Failure) and not terms.ignore_errors:
                return outcome._replace(offset=line.start)
            terms.breaker.count(outcome, line.start)
        for part in [[one] for one in finished] if terms.apart else [finished]:
            terms.write(span_of(part, terms.operator, check_input=terms.check_input))
        return terms.breaker.failure

    @override
    def _begun_until(self) -> int | None:
        return self._begun
