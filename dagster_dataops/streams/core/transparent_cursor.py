"""`TransparentCursor`: a cursor that changes neither items nor states."""

from collections.abc import Iterator
from typing import Any

from typing_extensions import override

from dagster_dataops.streams.core.stage import Cursor


class TransparentCursor(Cursor):
    """Yield the items of another cursor, with its states; end a run of elementwise stages.

    Args:
        source: The cursor to read.
    """

    def __init__(self, source: Cursor) -> None:
        self.opened = [source]
        self.numbering = source.numbering

    @property
    @override
    def numbers_after(self) -> int:
        return self.opened[0].numbers_after

    @override
    def items(self) -> Iterator[Any]:
        return self.opened[0].items()
