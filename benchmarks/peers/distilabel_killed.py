"""distilabel: the same pipeline with its cache, which it uses by default."""

from pathlib import Path

import orjson

from benchmarks.peers.distilabel_calls import answered
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    rows = answered(watch.specification, use_cache=True)
    written = Path(watch.specification["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps({"id": row["id"]}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
