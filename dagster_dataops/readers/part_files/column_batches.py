"""Group rows into batches over epochs: one record of columns, such as ``{"x": [1.0, 2.0]}``."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.stages.repeating import EpochStage


@dataclass(eq=False)
class BatchStage(EpochStage):
    """Group ``batch_size`` rows into each record. No rows are held between two batches.

    Attributes:
        batch_size: The number of rows per batch.
        drop_last: Whether to drop an incomplete last batch of an epoch.
        wrap: Whether batches continue into the next epoch, so that all are full. The very last
            one is filled with rows of the epoch that would follow.
    """

    name: ClassVar[str] = "batch"
    batch_size: int
    drop_last: bool
    wrap: bool

    @override
    def items(self) -> Iterator[Any]:
        rest: list[Any] = []
        while self.epochs is None or self._epoch < self.epochs:
            rest = yield from self._full_batches(rest)
            if rest and not self.wrap and not self.drop_last:
                self._has_yielded = True
                yield columns_of(rest)
            rest = rest if self.wrap else []
            if not (self._has_yielded or rest):  # no rows, or no full batch: no batch will follow
                return
            if self._epoch + 1 == self.epochs and not rest:
                return
            self._epoch, self._has_yielded = self._epoch + 1, False
            self.source.restart()
        if rest:
            yield columns_of(self._fill_batch(rest))

    def _full_batches(self, rows: list[Any]) -> Generator[Any, None, list[Any]]:
        """Yield full batches, the first beginning with ``rows``; return the remaining rows."""
        size, items = self.batch_size, self.source.items()
        while len(rows := [*rows, *islice(items, size - len(rows))]) == size:
            self._has_yielded = True
            yield columns_of(rows)
            rows = []
        return rows

    def _fill_batch(self, rows: list[Any]) -> list[Any]:
        """Return a full batch, filled with rows of further epochs."""
        size = self.batch_size
        while True:
            rows += islice(self.source.items(), size - len(rows))
            if len(rows) == size:
                return rows
            self.source.restart()


def columns_of(rows: list[Any]) -> dict[str, list[Any]]:
    """Return rows as one record of columns.

    Raises:
        DataPipelineError: The rows have different columns.
    """
    names = rows[0].keys()
    for row in rows:
        if row.keys() != names:
            msg = f"a batch needs rows with equal columns; found {list(names)} and {list(row)}"
            raise DataPipelineError(msg)
    return {name: [row[name] for row in rows] for name in names}
