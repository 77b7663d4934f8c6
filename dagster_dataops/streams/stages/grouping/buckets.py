"""``bucket``: group items into lists of a fixed size."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.streams.core.stage import UnaryStage


@dataclass(eq=False)
class Bucket(UnaryStage):
    """Group items into lists of ``bucket_size``. No item is held between two lists."""

    name: ClassVar[str] = "bucket"
    bucket_size: int
    drop_remainder: bool

    @override
    def items(self) -> Iterator[Any]:
        items, size = self.source.items(), self.bucket_size
        while bucket := list(islice(items, size)):
            if len(bucket) == size or not self.drop_remainder:
                yield bucket
