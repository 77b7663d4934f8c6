"""bespokelabs-curator: the same call with the same `working_dir`, as its cache asks for.

Its vocabulary, which it downloads at the start, is replaced.
"""

from pathlib import Path

import orjson

from benchmarks.chatting import MODEL
from benchmarks.peers.curator_calls import Asker
from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    with Path(given["source"]).open("rb") as file:
        records = [orjson.loads(line) for line in file]
    parameters = {
        "base_url": given["address"],
        "api_key": "none",
        "max_requests_per_minute": 10_000_000,
        "max_tokens_per_minute": 10_000_000_000,
        "max_concurrent_requests": given["in_flight"],
    }
    asker = Asker(model_name=MODEL, backend="openai", backend_params=parameters)
    answered = asker(records, working_dir=str(Path(given["out"]) / "curator"))
    written = Path(given["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for row in getattr(answered, "dataset", answered):
            file.write(orjson.dumps({"id": row["id"]}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])
