"""The script of `datachain_killed`."""

from pathlib import Path

import datachain as dc
import orjson

from benchmarks import ledger
from benchmarks.operators import clean
from benchmarks.reporting import Stopwatch


def cleaned(number: int, text: str) -> str:
    result = clean({"text": text})["text"]
    ledger.add(number)
    return result


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    if not any(
        one.name == "documents" for one in dc.datasets(column="dataset").to_values("dataset")
    ):
        with Path(given["source"]).open("rb") as file:
            records = [orjson.loads(line) for line in file]
        numbers, texts = ([record[key] for record in records] for key in ("id", "text"))
        dc.read_values(number=numbers, text=texts).save("documents")
    chain = dc.read_dataset("documents").settings(parallel=given["workers"])
    if "batch" in given:
        chain = chain.settings(batch_size=given["batch"])
    chain = chain.map(cleaned=cleaned).save("cleaned")
    written = Path(given["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for number in chain.to_values("number"):
            file.write(orjson.dumps({"id": number}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
