"""Metaxy: `resolve_update` names the samples to do; the loop and its writes are the user's."""

from pathlib import Path

import metaxy as mx
import orjson
import polars as pl
from metaxy.ext.metadata_stores.delta import DeltaMetadataStore

from benchmarks import ledger
from benchmarks.operators import clean
from benchmarks.reporting import Stopwatch


class Cleaned(mx.BaseFeature, spec=mx.FeatureSpec(key="cleaned", id_columns=["id"])):
    """Cleaned documents."""

    id: str
    text: str


def call(row: dict) -> dict:
    row = clean(row)
    ledger.add(int(row["id"]))
    return row


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    mx.init()
    store = DeltaMetadataStore(str(Path(given["out"]) / "store"))
    with Path(given["source"]).open("rb") as file:
        records = [orjson.loads(line) for line in file]
    samples = pl.DataFrame(
        {
            "id": [str(record["id"]) for record in records],
            "text": [record["text"] for record in records],
            "metaxy_provenance_by_field": [{"default": record["text"][:40]} for record in records],
        }
    )
    with store.open("w"):
        increment = store.resolve_update(Cleaned, samples=samples)
        todo = increment.new.to_polars().to_dicts()
        for start in range(0, len(todo), given["batch"]):
            rows = [call(row) for row in todo[start : start + given["batch"]]]
            store.write(Cleaned, pl.DataFrame(rows))
        stored = store.read(Cleaned).collect()["id"].to_list()
    written = Path(given["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for number in stored:
            file.write(orjson.dumps({"id": number}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
