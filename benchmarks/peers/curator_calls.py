"""bespokelabs-curator: limits the rate, tries again, keeps replies.

Its vocabulary, which it downloads at the start, is replaced.
"""

import os
from collections.abc import Iterable
from pathlib import Path

os.environ |= {"TELEMETRY_ENABLED": "false", "CURATOR_VIEWER": "0", "TQDM_DISABLE": "1"}

import orjson
import tiktoken


class Characters:
    """Four characters are a token."""

    def encode(self, text: str, **_: object) -> range:
        return range(len(text) // 4)


tiktoken.get_encoding = tiktoken.encoding_for_model = lambda _: Characters()

from bespokelabs import curator

from benchmarks.chatting import MODEL
from benchmarks.reporting import Stopwatch


class Asker(curator.LLM):
    """Asks about a text."""

    def prompt(self, record: dict) -> str:
        return record["text"]

    def parse(self, record: dict, response: str) -> dict:
        return {**record, "answer": response}


def answered(given: dict) -> Iterable[dict]:
    """Return the records of a specification with their answers; its folder has the cache."""
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
    replies = asker(records, working_dir=str(Path(given["out"]) / "curator"))
    return getattr(replies, "dataset", replies)


if __name__ == "__main__":
    watch = Stopwatch()
    rows = answered(watch.specification)
    written = Path(watch.specification["out"]) / "result.jsonl"
    with written.open("wb", buffering=1 << 20) as result:
        result.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    watch.finish([written])
