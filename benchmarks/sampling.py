"""Samples of tar shards, read by this package or by loops, in a separate process.

``python -m benchmarks.sampling SPECIFICATION``, with the keys source (a folder that `made` has
written), out, way and task. Way and task form a name of `TASKS`.
"""

import io
import os
import random
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks.flows import report
from benchmarks.reporting import Stopwatch
from dagster_dataops import crude, file_store, prepare_energon
from dagster_dataops.training.filestores.tars.tar_headers import (
    BLOCK,
    CHECKSUMS,
    REST,
    plain_rest,
    unpack_header,
)

SHARDS = 20


def made(folder: Path, count: int) -> Path:
    """Write tar shards of ``count`` samples, txt and json, of 1 to 4 KB, and where they lie.

    A copy is prepared for Energon.
    """
    random_bytes = random.Random(1)
    folder.mkdir()
    for shard in range(SHARDS):
        with tarfile.open(folder / f"d-{shard:03d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(count * shard // SHARDS, count * (shard + 1) // SHARDS):
                text = random_bytes.randbytes(random_bytes.randrange(400, 1900)).hex()
                meta = orjson.dumps({"n": number, "aux": f"{(number * 7919) % count:08d}.txt"})
                for name, data in (("json", meta), ("txt", text.encode())):
                    info = tarfile.TarInfo(f"{number:08d}.{name}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    prepare_energon(shutil.copytree(folder, f"{folder}-prepared"))
    rows = list(crude(folder).index())
    (folder / "rows.json").write_bytes(orjson.dumps(rows))
    return folder


def parsed(sample: Mapping[str, Any]) -> str:
    """Return the text of a sample, whose JSON is parsed as well."""
    orjson.loads(sample["json"])
    return str(sample["txt"], "utf-8")


def plain(rows: Iterable[Mapping[str, Any]], source: Path) -> Iterator[str]:
    """Samples by a loop that knows where they lie: one read for each."""
    opened: dict[str, int] = {}
    for row in rows:
        shard, start = row["shard"], row["at"]
        if shard not in opened:
            opened[shard] = os.open(source / shard, os.O_RDONLY)
        (first, size), (other, length) = row["parts"]["json"], row["parts"]["txt"]
        data = os.pread(opened[shard], other + length - start, start)
        orjson.loads(data[first - start : first - start + size])
        yield data[other - start : other - start + length].decode()


def plain_header(data: bytes) -> tuple[str, int] | None:
    """Return name and size of a regular file from its header; ``None`` at the end."""
    text, digits, behind, checksum = unpack_header(data, 0)
    other = plain_rest(data[REST:BLOCK])
    if other < 0 or behind & 0xDF:
        return None
    if (zlib.adler32(data[:REST]) & 0xFFFF) + other != CHECKSUMS[checksum]:
        return None
    return text.rstrip(b"\0").decode(), int(digits, 8)


def plain_headers(source: Path) -> Iterator[str]:
    """The names of all files, by a loop over the headers."""
    for path in sorted(source.glob("*.tar")):
        with path.open("rb", buffering=0) as file:
            at, descriptor = 0, file.fileno()
            while (found := plain_header(os.pread(descriptor, 512, at))) is not None:
                yield found[0]
                at += 512 + (found[1] + 511 & -512)


def crude_headers(source: Path) -> Iterator[str]:
    """The names of all files, from an index that is made for it."""
    os.environ["XDG_CACHE_HOME"] = os.fspath(Path(watch.specification["out"]) / "cache")
    for row in crude(source).index():
        for part in row["parts"]:
            yield f"{row['key']}.{part}"


def crude_aux(source: Path) -> Iterator[str]:
    """The texts of other samples, by name."""
    store = file_store(str(source))
    for row in ROWS:
        yield store.get(f"{(row['index'] * 7919) % len(ROWS):08d}.txt").decode()


def shuffled(rows: list[Any]) -> list[Any]:
    """Return rows in random order."""
    return random.Random(1).sample(rows, len(rows))


ROWS: list[Any] = []
TASKS: dict[str, Callable[[Path], Iterable[str]]] = {
    "plain ordered": lambda source: plain(ROWS, source),
    "plain shuffled": lambda source: plain(shuffled(ROWS), source),
    "plain headers": plain_headers,
    "crude ordered": lambda source: crude(source).map(parsed),
    "crude shuffled": lambda source: crude(source).shuffle(0, seed=1).map(parsed),
    "crude aux": crude_aux,
    "crude headers": crude_headers,
}


if __name__ == "__main__":
    folder = Path(orjson.loads(sys.argv[1])["source"])
    ROWS += orjson.loads((folder / "rows.json").read_bytes())
    watch = Stopwatch()
    report(watch, TASKS[f"{watch.specification['way']} {watch.specification['task']}"](folder))
