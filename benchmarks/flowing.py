"""Streams, ours or written out by hand, in a process of its own.

``python -m benchmarks.flowing SPECIFICATION``, with the keys source, out (a folder), way and task,
which make a name of `TASKS`. Writes how many items came and the sum of their lengths.
"""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from benchmarks.reporting import Stopwatch
from dagster_dataops import DataPipeline, read_jsonl, read_text

WINDOW = 1000
WEIGHTS = (0.7, 0.3)


def shortened(line: str) -> str:
    """Return a part of a line in capitals."""
    return line[9:40].upper()


def wanted(text: str) -> bool:
    """Say yes to most."""
    return len(text) > 20


def plain_lines(source: Path) -> Iterator[str]:
    """Lines, changed and chosen, by a loop."""
    with source.open(encoding="utf-8") as file:
        for line in file:
            text = shortened(line.rstrip("\n"))
            if wanted(text):
                yield text


def stream_lines(source: Path) -> Iterable[str]:
    """Lines, changed and chosen, by a stream."""
    return read_text(source).map(shortened).filter(wanted)


def shuffled(source: Path, generator: random.Random) -> Iterator[Any]:
    """Records, shuffled in windows."""
    with source.open("rb") as file:
        while window := list(map(orjson.loads, islice(file, WINDOW))):
            generator.shuffle(window)
            yield from window


def plain_mix(source: Path) -> Iterator[Any]:
    """Records of two streams by weight, by a loop."""
    generator = random.Random(1)
    streams = [shuffled(source, generator), shuffled(source, generator)]
    ended = [False, False]
    limits = [WEIGHTS[0], sum(WEIGHTS)]
    while not all(ended):
        at = bisect_right(limits, generator.random())
        for record in streams[at]:
            yield record
            break
        else:
            ended[at] = True
            streams[at] = shuffled(source, generator)


def stream_mix(source: Path) -> Iterable[Any]:
    """Records of two streams by weight, by a stream."""
    streams = [read_jsonl(source).shuffle(WINDOW) for _ in WEIGHTS]
    return DataPipeline.sample(streams, weights=WEIGHTS, seed=1)


TASKS: dict[str, Callable[[Path], Iterable[Any]]] = {
    "plain lines": plain_lines,
    "stream lines": stream_lines,
    "plain mix": plain_mix,
    "stream mix": stream_mix,
}


def main() -> None:
    """Read all of it and report."""
    watch = Stopwatch()
    given = watch.specification
    items = length = 0
    for item in TASKS[f"{given['way']} {given['task']}"](Path(given["source"])):
        items += 1
        length += len(item)
    result = Path(given["out"]) / "result.jsonl"
    result.write_bytes(orjson.dumps({"items": items, "length": length}) + b"\n")
    watch.finish([result], items=items)


if __name__ == "__main__":
    main()
