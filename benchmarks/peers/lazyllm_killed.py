"""LazyLLM's data module, started a second time with `LAZYLLM_DATA_PROCESS_RESUME`."""

import json
import os
import sys
from pathlib import Path

given = json.loads(sys.argv[1])
os.environ["LAZYLLM_DATA_PROCESS_PATH"] = given["out"] + "/results"
os.environ["LAZYLLM_DATA_PROCESS_RESUME"] = "1"

from benchmarks.peers import lazyllm_offline  # isort: skip # before LazyLLM

import lazyllm
from lazyllm.tools.data import data_register

from benchmarks import ledger, operators
from benchmarks.reporting import Stopwatch

_PREPARED = lazyllm_offline


@data_register("data.benchmark", rewrite_func="forward")
def counted_clean(data):
    data = operators.clean(data)
    ledger.add(data["id"])
    return data


if __name__ == "__main__":
    watch = Stopwatch()
    operator = lazyllm.data.benchmark.counted_clean(
        _concurrency_mode=given["mode"], _max_workers=given["workers"]
    )
    with Path(given["source"]).open(encoding="utf-8") as file:
        operator([json.loads(line) for line in file])
    watch.finish(Path(given["out"]).rglob("*_results.jsonl"))
