"""Batches of rows over epochs: each a record of columns, such as ``{"x": [1.0, 2.0]}``."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Cursor, Opening, Stage, Step
from dagster_dataops.streams.stages.repeating import EpochCursor


@dataclass(frozen=True, eq=False)
class Batches(Step):
    """Records of ``batch_size`` rows each.

    Attributes:
        batch_size: How many rows a batch has.
        epochs: How often everything is read; for ever if ``None``.
        drop_last: Whether what is left at the end of an epoch is dropped if it is no full batch;
            else it is a shorter one.
        wrap: Whether batches go on into the next epoch, so that all are full; the last one is
            filled up from the epoch that would come next.
    """

    name: ClassVar[str] = "batch"
    batch_size: int
    epochs: int | None
    drop_last: bool
    wrap: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE if self.epochs is None else self.upstream.finitude

    @override
    def endless(self) -> Stage | None:
        return self if self.epochs is None else super().endless()

    @override
    def open(self, opening: Opening) -> Cursor:
        return BatchCursor(self.upstream.open(opening), self)


class BatchCursor(EpochCursor):
    """Holds no rows between two batches."""

    def __init__(self, upstream: Cursor, stage: Batches) -> None:
        super().__init__(upstream)
        self._stage = stage

    @override
    def items(self) -> Iterator[Any]:
        stage, rest = self._stage, list[Any]()
        while stage.epochs is None or self._epoch < stage.epochs:
            rest = yield from self._epoch_from(rest)
            if rest and not stage.wrap and not stage.drop_last:
                self._any = True
                yield columns_of(rest)
            rest = rest if stage.wrap else []
            if not (self._any or rest):  # nothing is there, or no full batch: nothing will come
                return
            if self._epoch + 1 == stage.epochs and not rest:
                return
            self._epoch, self._any = self._epoch + 1, False
            self.upstream.restart()
        if rest:
            yield columns_of(self._filled(rest))

    def _epoch_from(self, rows: list[Any]) -> Generator[Any, None, list[Any]]:
        """Yield full batches, the first begun with ``rows``; return what is left."""
        size, items = self._stage.batch_size, self.upstream.items()
        while len(rows := [*rows, *islice(items, size - len(rows))]) == size:
            self._any = True
            yield columns_of(rows)
            rows = []
        return rows

    def _filled(self, rows: list[Any]) -> list[Any]:
        """Return a full batch, of as many further epochs as it takes."""
        size = self._stage.batch_size
        while True:
            rows += islice(self.upstream.items(), size - len(rows))
            if len(rows) == size:
                return rows
            self.upstream.restart()


def columns_of(rows: list[Any]) -> dict[str, list[Any]]:
    """Return rows as one record of columns.

    Raises:
        DataPipelineError: They have not all the same columns.
    """
    names = rows[0].keys()
    for row in rows:
        if row.keys() != names:
            msg = f"a batch needs rows of equal columns; here are {list(names)} and {list(row)}"
            raise DataPipelineError(msg)
    return {name: [row[name] for row in rows] for name in names}
