"""``verify.Python``: check the syntax of Python code, without running it."""

import ast
import threading
import warnings
from typing import Any, Final

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.verify.fenced_blocks import FencedBlock, fenced_blocks
from dagster_dataops.library.verify.verdict import Verdict, verify
from dagster_dataops.records import Record

_NAMES: Final = ("python", "py", "python3", "py3")
_MOST_BYTES: Final = 1_000_000
_TOO_DEEP: Final = (RecursionError, MemoryError)
_parsing: Final = threading.Lock()  # catch_warnings is not safe in threads


class Python(verify):
    """Check that a text is Python code that can be compiled. It is never run.

    Reads ``input_key="text"``. If the text has fenced blocks marked as Python (or blocks without a
    language, if none is), these are the code, one after the other, and each must be complete.
    Otherwise the whole text is. Writes ``output_key="valid"``, and in ``error_key="error"`` the
    line (of the text) and the message, or ``null``.

    Reasons of ``mode="drop"`` or ``"both"``: ``empty`` (no code), ``too_long`` (a block of more
    than 1 MB), ``too_deep`` (nested beyond what Python reads), ``syntax_error``. The syntax is that
    of the Python that runs this.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the result, a boolean.
        error_key: Column of the error in words; ``None`` writes none.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str = "valid",
        error_key: str | None = "error",
        *,
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key)
        self._verdict = Verdict(mode, output_key, error_key)

    def forward(self, record: Record) -> Any:
        text = self._column.text(record)
        blocks = fenced_blocks(text, _NAMES)
        if blocks is None:
            blocks = [FencedBlock(0, "", text)]
        if not any(block.code.strip() for block in blocks):
            return self._verdict.of(record, "empty")
        for block in blocks:
            if fault := _fault(block.code, block.line):
                return self._verdict.of(record, *fault)
        return self._verdict.of(record, None)


def _fault(code: str, line: int) -> tuple[str, str] | None:
    """Return the reason and the error of code that cannot be compiled."""
    if len(code) > _MOST_BYTES or len(code.encode("utf-8", "replace")) > _MOST_BYTES:
        return "too_long", f"line {line + 1}: longer than {_MOST_BYTES:,} bytes"
    try:
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code, "<text>")
    except SyntaxError as error:
        return "syntax_error", f"line {line + (error.lineno or 1)}: {error.msg}"
    except _TOO_DEEP:
        return "too_deep", f"line {line + 1}: nested too deep"
    except ValueError as error:  # null bytes, lone surrogates, integers of many digits
        return "syntax_error", f"line {line + 1}: {error}"
    return None


def syntax_fault(code: str) -> tuple[str, str] | None:
    """Return the reason and the error of code that cannot be compiled; ``None`` if it can."""
    return _fault(code, 0)
