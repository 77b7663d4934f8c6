"""Daft with a checkpoint by a key column, on its Ray runner, committed to a Delta table.

Of its sinks, those of Delta and Iceberg take part in a checkpoint.
"""

import os
from pathlib import Path

os.environ.update(DAFT_PROGRESS_BAR="0", DO_NOT_TRACK="true", DAFT_ANALYTICS_ENABLED="0")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import daft
import orjson
import ray
from daft import DataType, col

from benchmarks import ledger
from benchmarks.operators import clean
from benchmarks.reporting import Stopwatch


def call(number: int, text: str) -> str:
    cleaned = clean({"text": text})["text"]
    ledger.add(number)
    return cleaned


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    out = Path(given["out"])
    ray.init(
        address="local",
        num_cpus=given["workers"] + 2,  # the filter of keys takes some
        include_dashboard=False,
        logging_level="ERROR",
        object_store_memory=500_000_000,
    )
    daft.set_runner_ray()
    (out / "checkpoint").mkdir(exist_ok=True)
    store = daft.CheckpointStore((out / "checkpoint").as_uri())
    settings = daft.KeyFilteringSettings(num_workers=1, cpus_per_worker=1.0)
    checkpoint = daft.CheckpointConfig(store=store, on="id", settings=settings)
    frame = daft.read_json(given["source"], checkpoint=checkpoint)
    frame = frame.into_batches(given.get("batch", 100))
    function = daft.func(return_dtype=DataType.string())(call)
    frame = frame.with_column("text", function(col("id"), col("text")))
    commit = daft.IdempotentCommit(store, idempotence_key="clean")
    frame.write_deltalake(str(out / "result"), checkpoint=commit)
    rows = daft.read_deltalake(str(out / "result")).select("id").to_pydict()["id"]
    written = out / "result.jsonl"
    with written.open("wb") as file:
        for number in rows:
            file.write(orjson.dumps({"id": number}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
