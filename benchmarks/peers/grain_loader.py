"""grain's MapDataset over the records of a file, read by worker processes in batches of 32."""

from pathlib import Path

import grain.python as grain
from absl import app

from benchmarks.flows import report
from benchmarks.peers.line_records import BATCH, LineRecords
from benchmarks.reporting import Stopwatch


def main(_: list[str]) -> None:
    """Read all batches."""
    watch = Stopwatch()
    given = watch.specification
    records = grain.MapDataset.source(LineRecords(Path(given["source"]), given["task"]))
    batches = records.batch(BATCH, batch_fn=list).to_iter_dataset()
    read = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=given["workers"]))
    report(watch, (record for batch in read for record in batch))


if __name__ == "__main__":
    app.run(main)
