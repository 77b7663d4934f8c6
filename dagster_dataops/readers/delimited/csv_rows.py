"""Rows of delimited text, as the csv module of Python reads them, from any position."""

import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import StreamSourceError

_END: Final = "\ue000end\ue001"  # a row behind the last; inside a row, that row is open


class Dialect(NamedTuple):
    """How cells are told from one another; the names are those of the csv module."""

    delimiter: str = ","
    quotechar: str | None = '"'
    doublequote: bool = True
    escapechar: str | None = None
    skipinitialspace: bool = False

    def reader(self, lines: Iterator[str]) -> Any:
        """Return a reader of the csv module.

        Raises:
            TypeError: No text of one character where one is due.
        """
        options: dict[str, Any] = self._asdict()
        options["quoting"] = csv.QUOTE_NONE if self.quotechar is None else csv.QUOTE_MINIMAL
        return csv.reader(lines, **options)


class Rows(NamedTuple):
    """The rows that are complete in a block of lines.

    Attributes:
        cells: The texts of each row, none of a blank line; or why it cannot be read.
        before: How many lines of the block stand before each row.
        lines: How many lines they take together.
        text: Those lines.
        is_open: Whether behind them a row begins that does not end in the block.
    """

    cells: list[list[str] | csv.Error]
    before: list[int]
    lines: int
    text: str
    is_open: bool

    def first(self, lines: int) -> str:
        """Return the text of the first ``lines`` lines."""
        return "".join(islice(io.StringIO(self.text, newline=""), lines))


def split(text: str, dialect: Dialect) -> Rows:
    """Return the complete rows of some whole lines."""
    lines = list(io.StringIO(text, newline=""))
    reader = dialect.reader(chain(lines, (_END,)))
    rows: list[list[str] | csv.Error] = []
    ends = [0]
    while True:
        try:
            for cells in reader:
                rows.append(cells)
                ends.append(reader.line_num)
            break
        except csv.Error as error:
            rows.append(error)
            ends.append(reader.line_num)
    ends.pop()
    begins = ends.pop()  # of the last, which is no row or an open one
    if rows.pop() == [_END]:
        return Rows(rows, ends, len(lines), text, is_open=False)
    return Rows(rows, ends, begins, "".join(lines[:begins]), is_open=True)


def never_ends(path: str, line: int) -> StreamSourceError:
    """Return the error of a file that ends inside a row."""
    reason = "the row that begins here never ends: a quote is opened and not closed"
    return StreamSourceError(f"{path}, line {line}", reason)
