"""The report of a contender's process to the measuring process: one JSON line."""

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.processes import cpu_seconds, tree


class Stopwatch:
    """Runs from its construction, after the imports, to `finish`, when the result is complete."""

    def __init__(self) -> None:
        self.specification: dict[str, Any] = json.loads(sys.argv[1])
        self.restart()

    def restart(self) -> None:
        """Begin here: earlier work of this process and its workers is not measured."""
        workers = tree(os.getpid())[1:]
        self._cpu_before = time.process_time() + cpu_seconds(workers)
        self._began = self._lapped = time.perf_counter()

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self._lapped = self._lapped, time.perf_counter()
        return self._lapped - before

    def finish(self, outputs: Iterable[Path | str], **facts: Any) -> None:
        """Print the measurements and the paths of the results."""
        seconds = time.perf_counter() - self._began
        line = {
            "began": self._began,
            "cpu_before": self._cpu_before,
            "seconds": seconds,
            "outputs": [str(path) for path in outputs],
            **facts,
        }
        print("\n" + json.dumps(line), file=sys.__stdout__, flush=True)  # some replace sys.stdout
