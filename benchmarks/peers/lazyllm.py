"""LazyLLM's data module, in the given mode; it stores its result as jsonl too."""

import json
import os
import sys
from pathlib import Path

os.environ["LAZYLLM_DATA_PROCESS_PATH"] = json.loads(sys.argv[1])["out"]

import tiktoken


class _Offline:
    """Replaces a vocabulary that the import would download."""

    name = "gpt2"

    def encode(self, text, **_):
        return list(text.encode())

    def decode(self, tokens, **_):
        return bytes(tokens).decode(errors="replace")


tiktoken.get_encoding = lambda _name: _Offline()

import lazyllm
from lazyllm.tools.data import data_register

from benchmarks import operators
from benchmarks.reporting import Stopwatch


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
