"""distilabel: a pipeline of one task in processes of its own; a batch has as many as in flight."""

from collections.abc import Iterable
from pathlib import Path

import orjson
from distilabel.models import OpenAILLM
from distilabel.pipeline import Pipeline
from distilabel.steps import LoadDataFromDicts
from distilabel.steps.tasks import TextGeneration

from benchmarks.chatting import MODEL
from benchmarks.reporting import Stopwatch


def answered(given: dict, *, use_cache: bool) -> Iterable[dict]:
    """Return the records of a specification with their answers; its folder has the cache."""
    with Path(given["source"]).open("rb") as file:
        records = [orjson.loads(line) for line in file]
    size = given["in_flight"]
    with Pipeline(name="calls", cache_dir=Path(given["out"]) / "cache") as pipeline:
        source = LoadDataFromDicts(data=records, batch_size=size)
        model = OpenAILLM(model=MODEL, base_url=given["address"], api_key="none")
        model.generation_kwargs = {"max_new_tokens": 12}  # as many as the server sends without it
        task = TextGeneration(
            llm=model,
            input_batch_size=size,
            input_mappings={"instruction": "text"},
            add_raw_output=False,
            add_raw_input=False,
        )
        source >> task
    return pipeline.run(use_cache=use_cache)["default"]["train"]


if __name__ == "__main__":
    watch = Stopwatch()
    rows = answered(watch.specification, use_cache=False)
    written = Path(watch.specification["out"]) / "result.jsonl"
    with written.open("wb", buffering=1 << 20) as result:
        for row in rows:
            plain = {"id": row["id"], "text": row["text"], "answer": row["generation"]}
            result.write(orjson.dumps(plain, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
