"""Streams whose states of version 2 are frozen in ``stream_states.json``: values without names.

The last commit with that version has written it: what `written` returns, without the stages.
"""

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dagster_dataops import (
    DataPipeline,
    DataPipelineBuilder,
    PartFiles,
    crude,
    list_files,
    read_iterator,
    read_jsonl,
    read_sequence,
    readers,
)
from dagster_dataops.text import read_text

COUNTS: Final = (1, 4, 7)
"""The numbers of items after which states were taken."""


def write_files() -> None:
    """Write what the streams read into the working directory."""
    texts = [f"text {number} of several" for number in range(9)]
    Path("records.jsonl").write_text("".join(json.dumps({"text": one}) + "\n" for one in texts))
    Path("table.csv").write_text("".join(f"{at},{one}\n" for at, one in enumerate(["n", *texts])))
    Path("texts").mkdir()
    for number in range(3):
        Path("texts", f"part-{number}").write_text("\n".join(texts[3 * number :][:3]) + "\n")
    with zipfile.ZipFile("texts.zip", "w") as archive:
        for one in texts:
            archive.writestr(zipfile.ZipInfo(f"{one}.txt"), one)
    Path("pages.warc").write_bytes(b"".join(map(_page, texts)))
    Path("shards").mkdir()
    for shard in range(2):
        with tarfile.open(f"shards/{shard}.tar", "w") as tar:
            for number, one in enumerate(texts):
                _add(tar, f"{shard}{number}.txt", one.encode())


def _page(text: str) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {len(text)}\r\n\r\n"
    return f"{head}{text}\r\n\r\n".encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def _numbers(count: int = 30) -> DataPipelineBuilder:
    return read_sequence(list(range(count)))


def _lists() -> DataPipelineBuilder:
    return read_sequence([[number] * (1 + number % 4) for number in range(40)])


def _even(number: int) -> bool:
    return number % 2 == 0


def _fails(number: int) -> float:
    return 1 / (number % 3)


def _random(number: int, random: Any) -> list[float]:
    return [number, random.random()]


def _halves(items: list[Any]) -> tuple[list[Any], list[Any]]:
    middle = (len(items) + 1) // 2
    return [items[:middle]], items[middle:]


def _again(_: object) -> Iterator[int]:
    return iter(range(20))


def _lines(path: str) -> DataPipelineBuilder:
    return read_text(path)


def _pairs(number: int) -> DataPipelineBuilder:
    return _numbers(4).shuffle(0).map(str).bucket(2)


def _groups(items: list[Any]) -> list[list[Any]]:
    return [items[:2], items[2:]]


def _sum(items: list[int]) -> dict[str, int]:
    return {"sum": sum(items)}


def _cooked(sample: dict[str, Any]) -> dict[str, Any]:
    return {"text": sample["txt"].decode()}


STREAMS: Final[dict[str, Callable[[], Any]]] = {
    "count": lambda: DataPipeline.count(3, 2),
    "constant": lambda: DataPipeline.constant("x"),
    "iterator": lambda: read_iterator(iter(range(20)), _again, infinite=False),
    "filter": lambda: _numbers().map(_fails).filter(bool),
    "random": lambda: _numbers().filter(_even).map(_random, random=True),
    "parallel": lambda: _numbers().map(_fails, num_parallel_calls=3),
    "unordered": lambda: _numbers().map(
        str, num_parallel_calls=1, mode="thread", deterministic=False
    ),
    "shuffled": lambda: _numbers().shuffle(5).repeat(2),
    "by number": lambda: _numbers().shuffle(0).repeat(2),
    "shards": lambda: _numbers().shard(1, 3),
    "runs": lambda: _numbers().filter(_even).shard(1, 2, contiguous=True),
    "run by number": lambda: _numbers().shard(1, 2, contiguous=True),
    "concat": lambda: DataPipeline.concat(_numbers(3), _numbers(9)),
    "zip": lambda: DataPipeline.zip(_numbers(), _numbers().skip(2), names=["a", "b"]),
    "round robin": lambda: DataPipeline.round_robin(_numbers(3), _numbers(9)),
    "sample": lambda: DataPipeline.sample(_numbers(9), _numbers(4), weights=[0.7, 0.3]),
    "dynamic bucket": lambda: _numbers().dynamic_bucket(9, float, _halves),
    "by length": lambda: _lists().bucket_by_length([(9, 2), (6, 3), (3, 4)]),
    "sequences": lambda: _lists().pack(6, 4),
    "windows": lambda: _numbers().pack_windows(4, _groups, _sum),
    "lines": lambda: list_files("texts").yield_from(_lines),
    "nested": lambda: _numbers().yield_from(_pairs).prefetch(2),
    "jsonl": lambda: read_jsonl("records.jsonl").shuffle(4),
    "files": lambda: read_jsonl("records.jsonl").shuffle(0),
    "text": lambda: read_text("texts/part-0").prefetch(1),
    "csv": lambda: readers.read_delimited("table.csv"),
    "whole files": lambda: readers.read_files("texts").repeat(3),
    "parts": lambda: PartFiles("texts", 3, epochs=2).stream(),
    "zip file": lambda: readers.read_zipped_records("texts.zip"),
    "warc": lambda: readers.read_warc("pages.warc"),
    "tar": lambda: crude("shards").cook(_cooked),
    "tar by number": lambda: crude("shards").shuffle(0).cook(_cooked),
}


def opened(name: str) -> Any:
    """Return a stream at its start."""
    return STREAMS[name]().and_return(seed=5, on_error="skip")


def written() -> dict[str, list[Any]]:
    """Return for each stream its states after each of `COUNTS` items."""
    found: dict[str, list[Any]] = {name: [] for name in STREAMS}
    for name, states in found.items():
        for count in COUNTS:
            stream = opened(name)
            list(islice(stream, count))
            states.append(stream.state_dict())
            stream.close()
    return found
