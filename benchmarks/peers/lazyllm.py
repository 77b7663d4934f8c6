"""LazyLLM's data module, in the given mode; it stores its result as jsonl too."""

import json
from pathlib import Path

from benchmarks.peers import lazyllm_offline  # isort: skip # before LazyLLM

import lazyllm
from lazyllm.tools.data import data_register

from benchmarks import operators
from benchmarks.reporting import Stopwatch

_PREPARED = lazyllm_offline


@data_register("data.benchmark", rewrite_func="forward")
def upper(data):
    return operators.upper(data)


@data_register("data.benchmark", rewrite_func="forward")
def clean(data):
    return operators.clean(data)


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    construct = getattr(lazyllm.data.benchmark, given["operator"])
    operator = construct(_concurrency_mode=given["mode"], _max_workers=given["workers"])
    with Path(given["source"]).open(encoding="utf-8") as file:
        operator([json.loads(line) for line in file])
    watch.finish(Path(given["out"]).rglob("*_results.jsonl"))
