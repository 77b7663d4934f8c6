"""A code location with filters of the library, a summary of their signals, and a report.

The records (texts.jsonl) and the results are in the folder SLOW_PIPELINE_HOME.
"""

from paced import HOME  # beside this file, in the server's home
from served_settings import SETTINGS

from dagster_dataops import build_definitions, chain, data, data_register, pipeline


@data_register("data.reported", _concurrency_mode="single")
def written(record: dict) -> dict:
    """Write a text of 1 to 60 words."""
    number = record["id"]
    words = ("the quick brown fox jumps over a lazy dog " * 10).split()
    end = "" if number % 5 == 0 else "."
    return record | {"text": " ".join(words[: number % 60 + 1]) + end}


with pipeline("reported") as ppl:
    ppl.written = written()
    ppl.sized = data.filters.WordCount(min_words=10, max_words=50)
    ppl.filtered = chain(data.filters.TextLength(min_chars=60), data.filters.Regex(r"\.$"))
    ppl.signals = data.stats.Signals(["num_words", "text_len", "mean_word_length"])
    ppl.summary = data.stats.Summary()

defs = build_definitions(
    ppl,
    source=HOME / "texts.jsonl",
    **SETTINGS,
    report=True,
)
