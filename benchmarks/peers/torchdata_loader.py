"""torchdata's StatefulDataLoader over the records of a file, in batches of 32."""

import time
from pathlib import Path

import orjson
from torchdata.stateful_dataloader import StatefulDataLoader

from benchmarks.flows import report
from benchmarks.reporting import Stopwatch

_BATCH = 32
_SLEEP = 0.001


class Records:
    """The records of a file by number; a slow task sleeps for each."""

    def __init__(self, path: Path, *, slow: bool):
        self.lines = path.read_bytes().splitlines()
        self.slow = slow

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, number: int):
        if self.slow:
            time.sleep(_SLEEP)
        return orjson.loads(self.lines[number])


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    records = Records(Path(given["source"]), slow=given["task"] == "slow")
    loader = StatefulDataLoader(
        records, batch_size=_BATCH, num_workers=given["workers"], collate_fn=list
    )
    report(watch, (record for batch in loader for record in batch))
