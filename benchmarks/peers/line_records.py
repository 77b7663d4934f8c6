"""The records of a jsonl file by number, for loaders that read a map by number."""

import time
from pathlib import Path
from typing import Any

import orjson

BATCH = 32
_SLEEP = 0.001


class LineRecords:
    """The records of a file by number; the task "slow" sleeps for each."""

    def __init__(self, path: Path, task: str) -> None:
        self.lines = path.read_bytes().splitlines()
        self.slow = task == "slow"

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, number: int) -> Any:
        return self.of(self.lines[number])

    def of(self, line: bytes) -> Any:
        """Return the record of a line."""
        if self.slow:
            time.sleep(_SLEEP)
        return orjson.loads(line)
