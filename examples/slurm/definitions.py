"""A pipeline whose costly operator runs as array jobs of Slurm: ``dagster dev -f definitions.py``.

The results, the input and this folder are on a file system that all nodes see.
"""

import os
from pathlib import Path

from slurm_array import SlurmArray

from dagster_dataops import (
    DataOpsResource,
    build_definitions,
    data,
    data_register,
    pipeline,
    register_workplace,
)

SHARED = Path(os.environ.get("SHARED", "/shared/docs"))

register_workplace(
    "slurm",
    SlurmArray(SHARED / "tasks", options=["--cpus-per-task=1", "--mem=2G"]),
    default_workers=100,
)


@data_register("data.slurm_example", _concurrency_mode="slurm")
def count_words(record: dict, input_key: str = "text") -> dict:
    """Add the number of words."""
    return {**record, "words": len(record[input_key].split())}


with pipeline("docs") as ppl:
    ppl.clean = data.text.Normalize(input_key="text")
    ppl.words = data.slurm_example.count_words()

defs = build_definitions(
    ppl, source=str(SHARED / "docs.jsonl"), resource=DataOpsResource(root=str(SHARED / "results"))
)
