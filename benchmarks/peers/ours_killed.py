"""This package, started a second time with `resume`."""

from pathlib import Path

from benchmarks import ledger
from benchmarks.chatting import MODEL
from benchmarks.operators import clean
from benchmarks.reporting import Stopwatch
from dagster_dataops import ModelClient, config, data, data_register, pipeline


@data_register("data.benchmark")
def counted_clean(record: dict):
    """Clean a text, and count."""
    record = clean(record)
    ledger.add(record["id"])
    return record


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    config.data_process_path = given["out"]
    config.data_process_resume = True
    if given["mode"] == "async":
        client = ModelClient(base_url=given["address"], max_in_flight=given["in_flight"])
        operator = data.llm.Generate(prompt="{{ text }}", model=MODEL, client=client)
    else:
        operator = data.benchmark.counted_clean(
            _concurrency_mode=given["mode"], _max_workers=given["workers"]
        )
    with pipeline("benchmark") as ppl:
        ppl.add("node", operator)
    (report,) = ppl.materialize(Path(given["source"])).values()
    watch.finish([report.dataset.path])
