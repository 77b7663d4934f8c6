"""Records per CPU second of functions that take turns on blocks of records."""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Function = Callable[[dict[str, Any]], object]
_BLOCK = 80  # records


def records_of(path: str) -> list[dict[str, Any]]:
    """Return the records of a file."""
    with Path(path).open(encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def rates(functions: Mapping[str, Function], records: list[dict[str, Any]]) -> dict[str, float]:
    """Return records per CPU second by name: the median over the blocks."""
    found: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for name in names:
        functions[name](dict(records[0]))  # what is loaded or computed once
    for number in range(0, len(records) - _BLOCK + 1, _BLOCK):
        for name in reversed(names) if number // _BLOCK % 2 else names:
            given = [dict(record) for record in records[number : number + _BLOCK]]
            function = functions[name]
            began = time.process_time()
            for record in given:
                function(record)
            found[name].append(len(given) / (time.process_time() - began))
    return {name: statistics.median(each) for name, each in found.items()}
