"""Near-duplicates by datatrove's four steps as shipped, one after the other in one process."""

from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    source, out = Path(watch.specification["source"]), Path(watch.specification["out"])
    config = MinhashConfig()
    read = JsonlReader(str(source.parent), glob_pattern=source.name)
    signatures, buckets, removed = (str(out / name) for name in ("sign", "buckets", "remove"))
    write = JsonlWriter(
        str(out / "result"), "${rank}.jsonl", compression=None, expand_metadata=True
    )
    steps = [
        ([read, MinhashDedupSignature(signatures, config)], 1),
        ([MinhashDedupBuckets(signatures, buckets, config=config)], config.num_buckets),
        ([MinhashDedupCluster(buckets, removed, config=config)], 1),
        ([read, MinhashDedupFilter(removed), write], 1),
    ]
    for number, (step, tasks) in enumerate(steps):
        logs = str(out / f"logs{number}")
        LocalPipelineExecutor(step, tasks=tasks, workers=1, logging_dir=logs).run()
    watch.finish(sorted((out / "result").iterdir()))
