"""LazyLLM's pipeline of 24 steps for pretraining texts, with the settings that it comes with."""

import json
import os
import sys
from pathlib import Path

os.environ["LAZYLLM_DATA_PROCESS_PATH"] = json.loads(sys.argv[1])["out"]

import tiktoken


class _Characters:
    """Replaces a vocabulary that the import would download."""

    name = "gpt2"

    def encode(self, text, **_):
        return list(text.encode())

    def decode(self, tokens, **_):
        return bytes(tokens).decode(errors="replace")


tiktoken.get_encoding = lambda _name: _Characters()

from lazyllm.tools.data.pipelines.pt_data_ppl import build_text_pt_pipeline

from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    ppl = build_text_pt_pipeline(content_key="text", language="en")
    with Path(given["source"]).open(encoding="utf-8") as file:
        kept = ppl([json.loads(line) for line in file])
    result = Path(given["out"]) / "kept.jsonl"
    with result.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in kept)
    watch.finish([result], kept=len(kept))
