"""LazyLLM's data module on one operator; run by a Python that has LazyLLM installed.

    python peer_lazyllm.py SOURCE OPERATOR WORKERS

Prints {"rows": ..., "seconds": ...}. The clock runs from reading the jsonl to the last result.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["LAZYLLM_DATA_PROCESS_PATH"] = tempfile.mkdtemp()

import tiktoken


class _Offline:
    """Stands in for a vocabulary that the import would download."""

    name = "gpt2"

    def encode(self, text, **_):
        return list(text.encode())

    def decode(self, tokens, **_):
        return bytes(tokens).decode(errors="replace")


tiktoken.get_encoding = lambda _name: _Offline()

import lazyllm
import operators
from lazyllm.tools.data import data_register


@data_register("data.benchmark", rewrite_func="forward")
def upper(data):
    return operators.upper(data)


@data_register("data.benchmark", rewrite_func="forward")
def clean(data):
    return operators.clean(data)


if __name__ == "__main__":
    source, name, workers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    began = time.perf_counter()
    rows = [json.loads(line) for line in source.open(encoding="utf-8")]
    operator = getattr(lazyllm.data.benchmark, name)(_max_workers=workers)
    results = operator(rows)
    print(json.dumps({"rows": len(results), "seconds": time.perf_counter() - began}))
