"""distilabel: the same pipeline with its cache, which it uses by default."""

from pathlib import Path

import orjson
from distilabel.models import OpenAILLM
from distilabel.pipeline import Pipeline
from distilabel.steps import LoadDataFromDicts
from distilabel.steps.tasks import TextGeneration

from benchmarks.chatting import MODEL
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    with Path(given["source"]).open("rb") as file:
        records = [orjson.loads(line) for line in file]
    size = given["in_flight"]
    with Pipeline(name="calls", cache_dir=Path(given["out"]) / "cache") as pipeline:
        source = LoadDataFromDicts(data=records, batch_size=size)
        task = TextGeneration(
            llm=OpenAILLM(model=MODEL, base_url=given["address"], api_key="none"),
            input_batch_size=size,
            input_mappings={"instruction": "text"},
            add_raw_output=False,
            add_raw_input=False,
        )
        source >> task
    rows = pipeline.run(use_cache=True)["default"]["train"]
    written = Path(given["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps({"id": row["id"]}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
