"""Streams of this package, or loops written by hand, in a separate process.

``python -m benchmarks.flowing SPECIFICATION``, with the keys source, out (a folder), way and task.
Way and task form a name of `TASKS`. Writes the number of items and the sum of their lengths.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.flows import (
    WEIGHTS,
    WINDOW,
    plain_all,
    plain_lines,
    plain_mix,
    report,
    shortened,
    wanted,
)
from benchmarks.reporting import Stopwatch
from dagster_dataops import DataPipeline, read_jsonl
from dagster_dataops.streams.text_streams import read_text


def stream_lines(source: Path) -> Iterable[str]:
    """Lines, mapped and filtered, by a stream."""
    return read_text(source).map(shortened).filter(wanted)


def stream_mix(source: Path) -> Iterable[Any]:
    """Records of two streams by weight, by a stream."""
    streams = [read_jsonl(source).shuffle(WINDOW) for _ in WEIGHTS]
    return DataPipeline.sample(streams, weights=WEIGHTS, seed=1)


def stream_all(source: Path) -> Iterable[Any]:
    """Records, all shuffled, by a stream."""
    return read_jsonl(source).shuffle(0, seed=1)


def slow(record: Any) -> Any:
    """Return a record after a millisecond."""
    time.sleep(0.001)
    return record


def busy(record: Any) -> Any:
    """Return a record after a millisecond of CPU time."""
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass
    return record


def unchanged(record: Any) -> Any:
    """Return a record."""
    return record


def one_slow(source: Path) -> Iterable[Any]:
    """Records, mapped in a millisecond each, by one process."""
    return read_jsonl(source).map(slow)


def two_slow(source: Path) -> Iterable[Any]:
    """Records, mapped in a millisecond each, by two workers."""
    return read_jsonl(source).map(slow).workers(2)


def one_busy(source: Path) -> Iterable[Any]:
    """Records, mapped in a millisecond of CPU time each, by one process."""
    return read_jsonl(source).map(busy)


def two_busy(source: Path) -> Iterable[Any]:
    """Records, mapped in a millisecond of CPU time each, by two workers."""
    return read_jsonl(source).map(busy).workers(2)


def one_empty(source: Path) -> Iterable[Any]:
    """Records, mapped by a function that does nothing, by one process."""
    return read_jsonl(source).map(unchanged)


def two_empty(source: Path) -> Iterable[Any]:
    """Records, mapped by a function that does nothing, by two workers."""
    return read_jsonl(source).map(unchanged).workers(2)


TASKS: dict[str, Callable[[Path], Iterable[Any]]] = {
    "plain lines": plain_lines,
    "stream lines": stream_lines,
    "plain mix": plain_mix,
    "stream mix": stream_mix,
    "plain all": plain_all,
    "stream all": stream_all,
    "one slow": one_slow,
    "two slow": two_slow,
    "one busy": one_busy,
    "two busy": two_busy,
    "one empty": one_empty,
    "two empty": two_empty,
}


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    report(watch, TASKS[f"{given['way']} {given['task']}"](Path(given["source"])))
