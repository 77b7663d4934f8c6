"""torchdata.nodes with worker processes over the lines of a file, in batches of 32."""

from pathlib import Path

from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper, Unbatcher

from benchmarks.flows import report
from benchmarks.peers.line_records import BATCH, LineRecords
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    records = LineRecords(Path(given["source"]), given["task"])
    batches = Batcher(IterableWrapper(records.lines), BATCH, drop_last=False)
    mapped = ParallelMapper(
        batches,
        lambda batch: list(map(records.of, batch)),
        num_workers=given["workers"],
        method="process",
        multiprocessing_context="fork",
    )
    report(watch, Loader(Unbatcher(mapped)))
