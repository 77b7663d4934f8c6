"""mosaicml-streaming over the records of a file, written to its format before, in batches of 32."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from streaming import MDSWriter, StreamingDataset
from torch.utils.data import DataLoader

from benchmarks.flows import report
from benchmarks.peers.line_records import BATCH, LineRecords
from benchmarks.reporting import Stopwatch


class Dataset(StreamingDataset):
    """The records; the task "slow" sleeps for each."""

    def __init__(self, folder: str, records: LineRecords) -> None:
        super().__init__(local=folder, shuffle=False, batch_size=BATCH)
        self.records = records

    def __getitem__(self, at: int) -> Any:
        return self.records.of(super().__getitem__(at)["line"])


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    records = LineRecords(Path(given["source"]), given["task"])
    with tempfile.TemporaryDirectory() as folder:
        with MDSWriter(out=folder, columns={"line": "bytes"}) as writer:
            for line in records.lines:
                writer.write({"line": line})
        records.lines = []
        watch = Stopwatch()
        loader = DataLoader(
            Dataset(folder, records),
            batch_size=BATCH,
            num_workers=given["workers"],
            collate_fn=list,
        )
        report(watch, (record for batch in loader for record in batch))
