"""The items of a stream that failed: from the stream's own file to the error file of a result."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.records import encode_anything


def draft_errors(quarantine: Path, errors: Path) -> None:
    """Make the draft of an error file of what a stream has put into quarantine; none of nothing."""
    draft_of(errors).unlink(missing_ok=True)
    with JsonlWriter(errors) as writer:
        for row in _rows(quarantine):
            writer.write(encode_anything(row))
        writer.finish()


def _rows(quarantine: Path) -> Iterator[dict[str, Any]]:
    if not quarantine.exists():
        return
    with quarantine.open("rb") as file:
        for index, line in enumerate(file):
            entry = json.loads(line)  # which takes what older versions wrote, such as NaN
            yield {
                "index": index,
                "line": index + 1,
                "stage": entry["stage"],
                "exception": entry["exception"],
                "message": entry["message"],
                "input": entry["item"],
            }
