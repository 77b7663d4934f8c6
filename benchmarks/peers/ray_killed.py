"""Ray Data with a checkpoint by an id column, as `CheckpointConfig` describes it.

The input is written as Parquet before: `read_json` makes blocks of pandas, on which the filter of a
checkpoint fails with an `AssertionError`.
"""

import os
from pathlib import Path

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1")

import orjson
import pyarrow.json
import pyarrow.parquet
import ray
import ray.data
from ray.data.checkpoint import CheckpointConfig

from benchmarks import ledger
from benchmarks.operators import clean
from benchmarks.reporting import Stopwatch


def call(record):
    record = clean(record)
    ledger.add(record["id"])
    return record


def write_parquet(source, folder, files):
    """Write the records as Parquet files of one row group each."""
    table = pyarrow.json.read_json(source)
    folder.mkdir()
    for number in range(files):
        start, end = (table.num_rows * one // files for one in (number, number + 1))
        part = table.slice(start, end - start)
        pyarrow.parquet.write_table(part, folder / f"{number:05d}.parquet")


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    out = Path(given["out"]) / "result"
    ray.init(
        address="local",
        num_cpus=given["workers"],
        include_dashboard=False,
        logging_level="ERROR",
        object_store_memory=500_000_000,
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    context.checkpoint_config = CheckpointConfig("id", str(Path(given["out"]) / "checkpoint"))
    parquet = Path(given["out"]) / "input"
    if not parquet.exists():
        write_parquet(given["source"], parquet, given["files"])
    ray.data.read_parquet(str(parquet)).map(call).write_parquet(str(out))
    ray.shutdown()
    written = Path(given["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for path in sorted(out.glob("*.parquet")):
            for number in pyarrow.parquet.read_table(path)["id"].to_pylist():
                file.write(orjson.dumps({"id": number}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
