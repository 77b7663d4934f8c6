"""Record batches that Arrow reads from JSON lines itself, without a Python object per value.

The schema is that of the first records. A later line that does not fit it raises `GuessError`, and
the batches are then to be made from records. So the result is the same in both ways.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from dagster_dataops.byte_ranges import PartedFile
from dagster_dataops.quantities import counted

_BLOCK_BYTES: Final = 4 << 20  # of lines; a longer line is a `GuessError`
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


def quick_batches(path: Path, schema: Any, rows: int, size: int) -> Iterator[Any]:
    """Yield the records of a file as record batches.

    Args:
        path: A file of JSON lines without blank lines; it may be split in parts.
        schema: Their schema; all types fulfil `reads_exactly`.
        rows: How many they are.
        size: The most records in a batch.

    Raises:
        GuessError: A line does not fit the schema, or holds an integer that its type cannot hold.
    """
    left = rows
    try:
        for block in _blocks(path, schema):
            left -= block.num_rows
            if any(map(_inexact, block.columns)):
                msg = "a number may be an integer that no double can hold"
                raise GuessError(msg)
            for start in range(0, block.num_rows, size):
                yield block.slice(start, size)
    except pa.ArrowException as error:
        raise GuessError(str(error)) from None
    if left:
        msg = f"{counted(rows - left, 'records')} read, not {rows:,}"
        raise GuessError(msg)


def _blocks(path: Path, schema: Any) -> Iterator[Any]:
    """Yield record batches, each of the lines of a block of a file or of one of its parts."""
    for part in PartedFile.at(path).paths if path.is_dir() else (path,):
        yield from _blocks_of_file(part, schema)


def _blocks_of_file(path: Path, schema: Any) -> Iterator[Any]:
    read = arrow_json.ReadOptions(block_size=_BLOCK_BYTES)
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    with (
        pa.OSFile(str(path), "rb") as file,
        arrow_json.open_json(file, read_options=read, parse_options=parse) as reader,
    ):
        yield from reader


def _inexact(values: Any) -> bool:
    """Return whether a double among the values may have been another integer."""
    kind = values.type
    if pa.types.is_struct(kind):
        return any(map(_inexact, values.flatten()))
    if pa.types.is_list(kind):
        return _inexact(values.flatten())
    if not pa.types.is_float64(kind):
        return False
    ends = pc.min_max(values)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and max(-least, most) >= _EXACT
