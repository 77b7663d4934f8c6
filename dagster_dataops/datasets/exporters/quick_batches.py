"""Record batches that Arrow reads from JSON lines itself, without a Python object per value.

The schema is that of the first records. A later line that does not fit it raises `GuessError`, and
the batches are then to be made from records. So the result is the same in both ways. Arrow accepts
lines that are no JSON: NaN, texts that are not UTF-8, several objects in a line. They are found
here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from dagster_dataops.datasets.lines import line_blocks, opened_content

_BLOCK_BYTES: Final = 4 << 20  # of lines
_MOST_BYTES: Final = (1 << 31) - 1  # of lines that Arrow reads at once
_BETWEEN: Final = b"}\n{"
_EXACT: Final = 2.0**53  # from here on not every integer is a double
_PLAIN: Final = (pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_float64)
_TEXTS: Final = (pa.types.is_string, pa.types.is_large_string)


class GuessError(Exception):
    """A line does not fit the schema of the lines before it, or may lose a value."""


def reads_exactly(kind: Any) -> bool:
    """Return whether Arrow reads values of a type from JSON as they are, or refuses them."""
    if pa.types.is_struct(kind):
        return bool(kind.num_fields) and all(reads_exactly(field.type) for field in kind)
    if pa.types.is_list(kind):
        return reads_exactly(kind.value_type)
    return any(test(kind) for test in (*_PLAIN, *_TEXTS))


def quick_batches(path: Path, schema: Any, size: int) -> Iterator[Any]:
    """Yield the records of a file as record batches.

    Args:
        path: A file of JSON lines; it may be split in parts.
        schema: Their schema; all types fulfil `reads_exactly`.
        size: The most records in a batch.
    """
    read = arrow_json.ReadOptions(use_threads=False, block_size=_MOST_BYTES)
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    with opened_content(path) as (source, interval):
        for _, block in line_blocks(source, interval, _BLOCK_BYTES):
            try:
                table = arrow_json.read_json(pa.BufferReader(_checked(block)), read, parse)
            except pa.ArrowException as error:
                raise GuessError(str(error)) from None
            if table.num_rows != block.count(_BETWEEN) + 1 or any(map(_inexact, table.columns)):
                msg = "a line is no record, or a number may be one that no double can hold"
                raise GuessError(msg)
            yield from table.to_batches(size)


def _checked(block: bytes) -> bytes:
    """Return the lines in UTF-8 if each of them is one object.

    Arrow reads several objects in a line, or one in several lines, if no raw newline is in a text.
    A newline between two braces is always one between records.
    """
    lines = block.count(b"\n") + (block[-1:] != b"\n")
    if block[:1] != b"{" or not block.endswith((b"}\n", b"}")):
        lines = 0
    if lines != block.count(_BETWEEN) + 1 or len(block) >= _MOST_BYTES:
        msg = "a line is blank, is no object, or is too long"
        raise GuessError(msg)
    try:
        block.isascii() or block.decode()
    except UnicodeDecodeError as error:
        raise GuessError(str(error)) from None
    return block


def _inexact(values: Any) -> bool:
    """Return whether a double among the values may have been another integer."""
    kind = values.type
    if pa.types.is_struct(kind):
        return any(map(_inexact, values.flatten()))
    if pa.types.is_list(kind):
        return _inexact(pc.list_flatten(values))
    if not pa.types.is_float64(kind):
        return False
    ends = pc.min_max(values)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    exact = least is None or max(-least, most) < _EXACT
    return not exact or pc.any(pc.is_nan(values)).as_py() is True
