"""Near-duplicates by Data-Juicer's operator as shipped, 25 bands of 10 rows, in one process."""

import json
import os
import sys
from pathlib import Path

OUT = Path(json.loads(sys.argv[1])["out"])
os.environ.update(
    HF_HUB_OFFLINE="1", HF_DATASETS_CACHE=str(OUT / "cache"), PIP_NO_INDEX="1", UV_OFFLINE="1"
)

from data_juicer.core.data import NestedDataset
from data_juicer.ops.deduplicator import DocumentMinhashDeduplicator
from datasets import load_dataset

from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    source, result = watch.specification["source"], OUT / "result.jsonl"
    given = NestedDataset(load_dataset("json", data_files=source, split="train"))
    kept = DocumentMinhashDeduplicator(num_proc=1).run(given)
    with result.open("w") as file:
        for record in kept:
            present = {key: value for key, value in record.items() if value is not None}
            file.write(json.dumps(present) + "\n")
    watch.finish([result])
