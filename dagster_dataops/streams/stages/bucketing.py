"""``bucket``: group items into lists of a fixed size."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.streams.core.stage import Cursor, ReadContext, UnaryCursor, UnaryStage


@dataclass(frozen=True, eq=False)
class Bucket(UnaryStage):
    """Group items into lists of ``bucket_size``."""

    name: ClassVar[str] = "bucket"
    bucket_size: int
    drop_remainder: bool

    @override
    def open(self, context: ReadContext) -> Cursor:
        return BucketCursor(self.upstream.open(context), self)


class BucketCursor(UnaryCursor):
    """Collect one list at a time; nothing is held between two lists."""

    def __init__(self, upstream: Cursor, stage: Bucket) -> None:
        super().__init__(upstream)
        self._stage = stage

    @override
    def items(self) -> Iterator[Any]:
        items, size = self.upstream.items(), self._stage.bucket_size
        while bucket := list(islice(items, size)):
            if len(bucket) == size or not self._stage.drop_remainder:
                yield bucket
