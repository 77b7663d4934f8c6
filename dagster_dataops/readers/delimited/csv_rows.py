"""Split delimited text into rows with Python's csv module, in blocks of lines."""

import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import DamagedFileError

_END: Final = "\ue000end\ue001"  # appended as the last row; an open row contains it instead


class CsvDialect(NamedTuple):
    """The format of rows, with the argument names of the csv module."""

    delimiter: str = ","
    quotechar: str | None = '"'
    doublequote: bool = True
    escapechar: str | None = None
    skipinitialspace: bool = False

    def reader(self, lines: Iterator[str]) -> Any:
        """Return a reader of the csv module.

        Raises:
            TypeError: An argument is not a text of one character.
        """
        options: dict[str, Any] = self._asdict()
        options["quoting"] = csv.QUOTE_NONE if self.quotechar is None else csv.QUOTE_MINIMAL
        return csv.reader(lines, **options)


class Rows(NamedTuple):
    """The complete rows of a block of lines.

    Attributes:
        cells: The texts of each row, or the error of an unreadable row; empty for a blank line.
        before: For each row, the number of lines before it in the block.
        lines: The number of lines of all rows.
        text: Those lines.
        is_open: Whether another row begins after them and does not end in the block.
    """

    cells: list[list[str] | csv.Error]
    before: list[int]
    lines: int
    text: str
    is_open: bool

    def first(self, lines: int) -> str:
        """Return the text of the first ``lines`` lines."""
        return "".join(islice(io.StringIO(self.text, newline=""), lines))


def split(text: str, dialect: CsvDialect) -> Rows:
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
    begins = ends.pop()  # the start of the last row: the end mark or an open row
    if rows.pop() == [_END]:
        return Rows(rows, ends, len(lines), text, is_open=False)
    return Rows(rows, ends, begins, "".join(lines[:begins]), is_open=True)


def unclosed_row_error(path: str, line: int) -> DamagedFileError:
    """Return the error for a file that ends inside a row."""
    reason = "the row that begins here never ends: its quote is not closed"
    return DamagedFileError(f"{path}, line {line}", reason)
