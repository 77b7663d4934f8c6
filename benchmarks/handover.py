"""Measure packing and exports for trainers, beside TRL and the writers of the formats.

    python -m benchmarks.handover [--documents N] [--rounds N]

TRL, mosaicml-streaming, litdata and megatron-core are measured if they are installed. Each row is
the CPU time of one process, the best of the rounds, in nanoseconds per token. Packing is measured
without files: lists of Python in, lists out, and Arrow in, Arrow out for TRL. Exports are measured
from a JSON Lines file to the complete files; the other writers read the same file with orjson.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from dagster_dataops import JsonlDataset, data
from dagster_dataops.datasets.exporters.exporter import ExportRecords
from dagster_dataops.library.tokens.pack_plans import best_fit

MOST = 4096
WINDOW = 1000
COLUMNS = ["input_ids", "labels"]


def documents(count: int) -> list[dict[str, list[int]]]:
    """Return documents of lognormal length, with a mean of 400 tokens."""
    chance = random.Random(1)
    records = []
    for _ in range(count):
        size = min(MOST, max(8, int(chance.lognormvariate(5.5, 1))))
        ids = [chance.randrange(50_000) for _ in range(size)]
        records.append({"input_ids": ids, "labels": ids})
    return records


def packing(lines: list[bytes], strategy: str) -> tuple[float, int]:
    """Return the CPU seconds of packing windows of records, and the number of packs.

    Records are parsed right before, outside of the time, as in a run.
    """
    operator = data.tokens.Pack(MOST, columns=COLUMNS, strategy=strategy)
    seconds, packs = 0.0, 0
    for start in range(0, len(lines), WINDOW):
        records = list(map(orjson.loads, lines[start : start + WINDOW]))
        begin = time.process_time()
        packs += len(operator.forward_window(records))
        seconds += time.process_time() - begin
    return seconds, packs


def trl_packing(records: list[dict[str, Any]], strategy: str) -> tuple[float, int]:
    """Return the CPU seconds of TRL for the same windows, and the number of packs."""
    import datasets
    from trl import pack_dataset

    datasets.disable_progress_bars()
    datasets.disable_caching()
    dataset = datasets.Dataset.from_list(records)
    begin = time.process_time()
    packed = pack_dataset(dataset, MOST, strategy, map_kwargs={"batch_size": WINDOW})
    return time.process_time() - begin, len(packed)


def planning(lengths: list[int]) -> tuple[float, int]:
    """Return the CPU seconds of `best_fit` alone, and the number of packs."""
    begin = time.process_time()
    packs = sum(
        len(best_fit(lengths[start : start + WINDOW], MOST))
        for start in range(0, len(lengths), WINDOW)
    )
    return time.process_time() - begin, packs


def exporting(exporter: Any, source: Path, name: str) -> Callable[[Path], None]:
    """Return the function that exports a file into a folder ``name``."""

    def write(place: Path) -> None:
        (place / name).mkdir()
        exporter.write(ExportRecords(JsonlDataset.of_file(source)), place / name)

    return write


def records_of(source: Path) -> Iterator[dict[str, Any]]:
    with source.open("rb") as file:
        yield from map(orjson.loads, file)


def megatron_writer(source: Path) -> Callable[[Path], None]:
    import numpy as np
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    def write(place: Path) -> None:
        builder = IndexedDatasetBuilder(str(place / "a.bin"), dtype=np.int32)
        for record in records_of(source):
            ids = record["input_ids"]
            builder.add_document(torch.tensor(ids, dtype=torch.int32), [len(ids)])
        builder.finalize(str(place / "a.idx"))

    return write


def mds_writer(source: Path) -> Callable[[Path], None]:
    import numpy as np
    from streaming import MDSWriter

    def write(place: Path) -> None:
        columns = {"input_ids": "ndarray:int32"}
        with MDSWriter(out=str(place / "b"), columns=columns, hashes=["sha1"]) as writer:
            for record in records_of(source):
                writer.write({"input_ids": np.array(record["input_ids"], np.int32)})

    return write


def litdata_writer(source: Path) -> Callable[[Path], None]:
    import torch
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter

    def write(place: Path) -> None:
        loader = TokensLoader(2048)
        writer = BinaryWriter(str(place / "c"), chunk_bytes=1 << 26, item_loader=loader)
        for at, record in enumerate(records_of(source)):
            writer[at] = torch.tensor(record["input_ids"], dtype=torch.int32)
        writer.done()
        writer.merge()

    return write


def huggingface_writer(source: Path) -> Callable[[Path], None]:
    import datasets

    def write(place: Path) -> None:
        dataset = datasets.Dataset.from_generator(
            records_of, gen_kwargs={"source": source}, cache_dir=str(place / "cache")
        )
        dataset.save_to_disk(place / "d")

    return write


def seconds_of(write: Callable[[Path], None], rounds: int) -> float:
    """Return the least CPU seconds of some rounds, each into an empty folder."""
    best = float("inf")
    for _ in range(rounds):
        place = Path(tempfile.mkdtemp())
        try:
            begin = time.process_time()
            write(place)
            best = min(best, time.process_time() - begin)
        finally:
            shutil.rmtree(place)
    return best


EXPORTS: dict[str, tuple[Any, str, Callable[[Path], Callable[[Path], None]], str]] = {
    "Megatron": (lambda: data.export.Megatron("x/a"), "megatron", megatron_writer, "x"),
    "MDS": (
        lambda: data.export.MDS("x", {"input_ids": "ndarray:int32"}),
        "streaming",
        mds_writer,
        "x",
    ),
    "LitData": (lambda: data.export.LitData("x"), "litdata", litdata_writer, "x"),
    "Hugging Face": (lambda: data.export.HuggingFace("x"), "datasets", huggingface_writer, "x"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    records = documents(options.documents)
    lines = [orjson.dumps(record) for record in records]
    lengths = [len(record["input_ids"]) for record in records]
    tokens = sum(lengths)

    def show(name: str, seconds: float, other: float | None, more: str = "") -> None:
        beside = "" if other is None else f"{other / tokens * 1e9:9.1f}{other / seconds:9.2f}"
        print(f"{name:28}{seconds / tokens * 1e9:9.1f}{beside:18}  {more}")

    print(f"{tokens:,} tokens in {len(records):,} documents; nanoseconds of CPU per token")
    print(f"{'':28}{'ours':>9}{'theirs':>9}{'times':>9}")
    rounds = range(options.rounds)
    for ours, theirs in (("best_fit", "bfd"), ("wrapped", "wrapped")):
        seconds, packs = min(packing(lines, ours) for _ in rounds)
        other = None
        more = f"fill {tokens / packs / MOST:.4f}"
        if find_spec("trl"):
            other, count = min(trl_packing(records, theirs) for _ in rounds)
            more += f", theirs {tokens / count / MOST:.4f}"
        show(f"pack, {ours}", seconds, other, more)
    show("pack, only the plan", min(planning(lengths) for _ in rounds)[0], None)
    source = Path(tempfile.mkdtemp()) / "documents.jsonl"
    source.write_bytes(
        b"".join(orjson.dumps({"input_ids": one["input_ids"]}) + b"\n" for one in records)
    )
    for name, (make, package, writer, folder) in EXPORTS.items():
        seconds = seconds_of(exporting(make(), source, folder), options.rounds)
        other = seconds_of(writer(source), options.rounds) if find_spec(package) else None
        show(f"export, {name}", seconds, other)
    shutil.rmtree(source.parent)


if __name__ == "__main__":
    main()
