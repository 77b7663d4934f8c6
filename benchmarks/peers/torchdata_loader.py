"""torchdata's StatefulDataLoader over the records of a file, in batches of 32."""

from pathlib import Path

from torchdata.stateful_dataloader import StatefulDataLoader

from benchmarks.flows import report
from benchmarks.peers.line_records import BATCH, LineRecords
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    records = LineRecords(Path(given["source"]), given["task"])
    loader = StatefulDataLoader(
        records, batch_size=BATCH, num_workers=given["workers"], collate_fn=list
    )
    report(watch, (record for batch in loader for record in batch))
