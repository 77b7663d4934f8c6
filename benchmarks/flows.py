"""The functions and loops with which streams are measured."""

import random
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from benchmarks.reporting import Stopwatch

WINDOW = 1000
WEIGHTS = (0.7, 0.3)


def shortened(line: str) -> str:
    """Return a part of a line in capitals."""
    return line[9:40].upper()


def wanted(text: str) -> bool:
    """Return true for most items."""
    return len(text) > 20


def plain_lines(source: Path) -> Iterator[str]:
    """Lines, mapped and filtered, by a loop."""
    with source.open(encoding="utf-8") as file:
        for line in file:
            text = shortened(line.rstrip("\n"))
            if wanted(text):
                yield text


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


def plain_all(source: Path) -> Iterator[Any]:
    """Records, all shuffled, by a loop that holds them in memory."""
    with source.open("rb") as file:
        records = [orjson.loads(line) for line in file]
    random.Random(1).shuffle(records)
    yield from records


def report(watch: Stopwatch, items: Iterable[Any]) -> None:
    """Read all items and report their number, and the sum of their lengths."""
    count = length = 0
    began = time.process_time()
    for item in items:
        count += 1
        length += len(item)
    result = Path(watch.specification["out"]) / "result.jsonl"
    result.write_bytes(orjson.dumps({"items": count, "length": length}) + b"\n")
    watch.finish([result], items=count, cpu=time.process_time() - began)
