"""Polars with a function over rows: eager, one thread for Python, with a given schema."""

from pathlib import Path

import polars as pl

from benchmarks import operators
from benchmarks.reporting import Stopwatch

_NEW = {"upper": {}, "clean": {"words": pl.Int64, "distinct": pl.Int64}}

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    out = Path(given["out"]) / "result.jsonl"
    function = getattr(operators, given["operator"])
    frame = pl.read_ndjson(given["source"])
    returned = pl.Struct({**frame.schema, **_NEW[given["operator"]]})
    column = pl.struct(pl.all()).map_elements(function, return_dtype=returned)
    frame.select(column.alias("row")).unnest("row").write_ndjson(out)
    watch.finish([out])
