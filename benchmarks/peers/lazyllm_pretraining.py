"""LazyLLM's own pipeline of 24 steps for texts, in one process.

Each step stores its result. No text is dropped for a word of its list, since ours has none.

Nothing is downloaded: the data of NLTK are those in the wheel of llama-index-core, and the
tokenizer is the one of our pipeline, with the vocabulary in its wheel.
"""

import importlib.util
import json
import math
import os
from pathlib import Path

from benchmarks.peers import lazyllm_offline  # isort: skip # before LazyLLM

_CORE = Path(importlib.util.find_spec("llama_index.core").origin).parent
os.environ["NLTK_DATA"] = str(_CORE / "_static" / "nltk_cache")

import bpe_openai
from lazyllm.tools.data.operators.token_chunker import TokenChunker
from lazyllm.tools.data.pipelines.pt_data_ppl import build_text_pt_pipeline

from benchmarks.reporting import Stopwatch

_PREPARED = lazyllm_offline
TokenChunker._load_tokenizer = lambda _self: bpe_openai.get_encoding("o200k_base")


def main() -> None:
    """Run the steps and report."""
    watch = Stopwatch()
    given = watch.specification
    steps = build_text_pt_pipeline(content_key="text", language="en")
    steps.word_blocklist_filter.threshold = math.inf
    for step in steps._items:
        step._concurrency_mode = "single"
    with Path(given["source"]).open(encoding="utf-8") as file:
        made = steps([json.loads(line) for line in file])
    result = Path(given["out"]) / "result.jsonl"
    with result.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(piece) + "\n" for piece in made)
    watch.finish([result], kept=len(made))


if __name__ == "__main__":
    main()
