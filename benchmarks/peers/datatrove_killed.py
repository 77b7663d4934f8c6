"""datatrove's local executor, started a second time with the same `logging_dir`."""

from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from benchmarks import ledger, operators
from benchmarks.peers.datatrove import Apply, cut
from benchmarks.reporting import Stopwatch


def call(record):
    record = operators.clean(record)
    ledger.add(int(record["id"]))
    return {**record, "id": str(record["id"])}  # it writes no field whose value is 0


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    out, files = Path(given["out"]), given["files"]
    if not (out / "pieces").exists():
        cut(Path(given["source"]), out / "pieces", files)
    steps = [
        JsonlReader(str(out / "pieces")),
        Apply(call),
        JsonlWriter(str(out / "result"), "${rank}.jsonl", compression=None, expand_metadata=True),
    ]
    logs = str(out / "logs")
    LocalPipelineExecutor(steps, tasks=files, workers=given["workers"], logging_dir=logs).run()
    watch.finish(sorted((out / "result").iterdir()))
