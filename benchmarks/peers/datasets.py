"""Hugging Face datasets: load_dataset, map with processes, to_json."""

import os
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

import datasets

from benchmarks import operators
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    out = Path(given["out"])
    function = getattr(operators, given["operator"])
    loaded = datasets.load_dataset(
        "json", data_files=given["source"], split="train", cache_dir=str(out / "cache")
    )
    mapped = loaded.map(function, num_proc=given["workers"])
    result = out / "result.jsonl"
    mapped.to_json(str(result), num_proc=given["workers"], force_ascii=False)
    watch.finish([result])
