"""Rows of the error file: from the error lines of spans, and from failed items of streams."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.journal.failed_record import FailedRecord
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.lines import LineCounter
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.records import encode_anything

_EDITED: Final = {  # what a row has at least; a line that was edited may lack it
    "index": "unknown",
    "line": "unknown",
    "exception": "(a line that is no record)",
    "message": "",
    "input": None,
}


def parse_error_row(line: bytes) -> dict[str, Any]:
    """Return the row in a line of an error file, for display; users may have edited the file."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = None
    row = _EDITED | (row if isinstance(row, dict) else {})
    return row | {"message": str(row["message"])}


def error_row(
    record: FailedRecord, location: Location, records_before: int, counter: LineCounter
) -> bytes:
    """Return the row of a failed record: its error line with index and line number.

    Args:
        record: The failed record.
        location: Where the input is.
        records_before: Number of input records before the span of the record.
        counter: Counts the lines of the input.
    """
    row = {
        "index": records_before + record.position,
        "path": str(location),
        "line": counter.line_at(record.offset),
        **record.row,
    }
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def draft_quarantined(quarantine: Path, errors: Path, hide: Callable[[str], str] = str) -> None:
    """Make the draft of the error file of a stream; it is empty if no item failed.

    Args:
        quarantine: The file of failed items that the stream wrote; it may be missing.
        errors: The error file.
        hide: Hides secrets in the texts of exceptions.
    """
    draft_of(errors).unlink(missing_ok=True)
    with JsonlWriter(errors) as writer:
        for row in _quarantined(quarantine):
            row |= {name: hide(str(row[name])) for name in ("exception", "message")}
            writer.write(encode_anything(row))
        writer.finish()


def _quarantined(quarantine: Path) -> Iterator[dict[str, object]]:
    if not quarantine.exists():
        return
    with quarantine.open("rb") as file:
        for index, line in enumerate(file):
            entry = json.loads(line)  # unlike orjson, it reads NaN
            yield {
                "index": index,
                "line": index + 1,
                "stage": entry["stage"],
                "exception": entry["exception"],
                "message": entry["message"],
                "input": entry["item"],
            }
