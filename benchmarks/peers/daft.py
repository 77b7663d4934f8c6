"""daft with a row function, in separate processes where faster; its order differs."""

import os
from pathlib import Path

os.environ.update(DAFT_PROGRESS_BAR="0", DO_NOT_TRACK="true", DAFT_ANALYTICS_ENABLED="0")

import daft
from daft import DataType, col

from benchmarks import operators
from benchmarks.reporting import Stopwatch

_STRING, _INTEGER = DataType.string(), DataType.int64()
_RETURNED = {
    "upper": {"text": _STRING},
    "clean": {"text": _STRING, "words": _INTEGER, "distinct": _INTEGER},
}

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    name, out = given["operator"], Path(given["out"]) / "result"
    function = getattr(operators, name)

    def run(text: str):
        return function({"text": text})

    returned = DataType.struct(_RETURNED[name])
    call = daft.func(return_dtype=returned, use_process=name == "clean")(run)
    frame = daft.read_json(given["source"]).with_column("row", call(col("text")))
    fields = [col("row").get(field).alias(field) for field in _RETURNED[name]]
    frame.select(col("id"), *fields).write_json(str(out))
    watch.finish(sorted(out.iterdir()))
