"""A source of numbers that can be read by number, and notes which were read."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dagster_dataops.streams.core.random_access import IndexedItems, RandomAccess
from dagster_dataops.streams.core.stage import SourceStage
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder


class _Numbers(IndexedItems):
    def __init__(self, size, noted):
        self.size, self._noted = size, noted

    def item(self, number):
        if self._noted is not None:
            with self._noted.open("a") as file:
                file.write(f"{number}\n")
        return number


@dataclass(eq=False)
class _NumberSource(SourceStage):
    name: ClassVar[str] = "numbers"
    size: int
    noted: Path | None

    def items(self):
        raise AssertionError("read in order")

    def access(self, context):
        counter = context.failures.counter(self.name)
        return RandomAccess(counter, lambda _: nullcontext(_Numbers(self.size, self.noted)))


def numbers_by_number(size, noted=None):
    """Return a stream of the numbers below ``size``; those read are written to ``noted``."""
    return DataPipelineBuilder(_NumberSource(size, noted))
