"""The speed of each operator of the library that works with its default options.

``python -m benchmarks.catalogue_speeds`` writes ``docs/catalogue/speeds.json``: records per CPU
second of one process, with the work of the engine, for English texts of about 2,000 characters;
operators of ``html`` get a page of that text.
"""

import logging
import sys
from functools import cache
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import orjson

from benchmarks import corpus
from dagster_dataops import data, data_register
from dagster_dataops.errors import DataOpsError

_GROUPS = ["text", "filters", "language", "pii", "html", "markdown", "chunk", "tokens", "dedup"]
_FILE = Path(__file__).parents[1] / "docs" / "catalogue" / "speeds.json"
_OTHER_INPUT = {"dedup.Url", "filters.Url", "tokens.Pack"}  # they read no texts
_RECORDS = 1_000
_ROUNDS = 3
_SETTINGS = {"_concurrency_mode": "single", "_save_data": False, "_ignore_errors": False}


@cache
def _texts() -> list[dict[str, Any]]:
    return list(corpus.prose(_RECORDS))


@cache
def _pages() -> list[dict[str, Any]]:
    pages = ("".join(f"<p>{one}</p>" for one in row["text"].split("\n")) for row in _texts())
    return [{"html": f"<html><body><main>{page}</main></body></html>"} for page in pages]


def speed(group: str, name: str) -> int | None:
    """Return an operator's records per CPU second; ``None`` if it needs options or other input."""
    try:
        operator = getattr(getattr(data, group), name)(**_SETTINGS)
        records = _pages() if group == "html" else _texts()
        return round(_RECORDS / median(_seconds(operator, records) for _ in range(_ROUNDS)))
    except (DataOpsError, TypeError):
        return None


def _seconds(operator: Any, records: list[dict[str, Any]]) -> float:
    begun = process_time()
    operator(records)
    return process_time() - begun


def main() -> None:
    """Measure all operators, and write the file."""
    logging.disable(logging.WARNING)
    found = {}
    for group in _GROUPS:
        for name in data_register.operators(group):
            rate = None if f"{group}.{name}" in _OTHER_INPUT else speed(group, name)
            sys.stdout.write(f"{group}.{name}: {rate}\n")
            if rate is not None:
                found[f"{group}.{name}"] = rate
    _FILE.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
