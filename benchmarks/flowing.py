"""Streams of this package, or loops written by hand, in a separate process.

``python -m benchmarks.flowing SPECIFICATION``, with the keys source, out (a folder), way and task.
Way and task form a name of `TASKS`. Writes the number of items and the sum of their lengths.
"""

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
from dagster_dataops.streams.text import read_text


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


TASKS: dict[str, Callable[[Path], Iterable[Any]]] = {
    "plain lines": plain_lines,
    "stream lines": stream_lines,
    "plain mix": plain_mix,
    "stream mix": stream_mix,
    "plain all": plain_all,
    "stream all": stream_all,
}


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    report(watch, TASKS[f"{given['way']} {given['task']}"](Path(given["source"])))
