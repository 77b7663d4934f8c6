"""The items of a stream that failed: from the stream's own file to the error file of a result."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from dagster_dataops.datasets.files import draft_of
from dagster_dataops.datasets.writing import JsonlWriter


def draft_errors(quarantine: Path, errors: Path) -> None:
    """Make the draft of an error file of what a stream has put into quarantine; none of nothing."""
    draft_of(errors).unlink(missing_ok=True)
    with JsonlWriter(errors) as writer:
        for row in _rows(quarantine):
            writer.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        writer.finish()


def _rows(quarantine: Path) -> Iterator[dict[str, Any]]:
    if not quarantine.exists():
        return
    with quarantine.open("rb") as file:
        for index, line in enumerate(file):
            entry = orjson.loads(line)
            yield {
                "index": index,
                "line": index + 1,
                "stage": entry["stage"],
                "exception": entry["exception"],
                "message": entry["message"],
                "input": entry["item"],
            }
