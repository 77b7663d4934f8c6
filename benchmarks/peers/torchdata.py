"""torchdata.nodes: ParallelMapper in processes (batches of 64) or threads, results in order."""

from pathlib import Path

import orjson
from torchdata.nodes import IterableWrapper, Loader, ParallelMapper

from benchmarks import operators
from benchmarks.reporting import Stopwatch


def rows(path: str):
    with Path(path).open("rb") as file:
        yield from map(orjson.loads, file)


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    processes = given["mode"] == "process"
    mapper = ParallelMapper(
        IterableWrapper(rows(given["source"])),
        getattr(operators, given["operator"]),
        num_workers=given["workers"],
        in_order=True,
        method=given["mode"],
        prebatch=64 if processes else None,
        multiprocessing_context="fork" if processes else None,
        snapshot_frequency=1 << 30,
    )
    out = Path(given["out"]) / "result.jsonl"
    with out.open("wb", buffering=1 << 20) as file:
        for record in Loader(mapper):
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([out])
