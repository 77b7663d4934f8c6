"""A code location for the browser: failures, checks that fail, an option to change.

The records (texts.jsonl) and the results are in the folder SLOW_PIPELINE_HOME.
"""

import time

from paced import HOME, pauses  # beside this file, in the server's home
from served_settings import SETTINGS

from dagster_dataops import build_definitions, checks, data_register, pipeline


@data_register("data.browsed", _concurrency_mode="thread", _max_workers=4)
def shout(record: dict, input_key: str = "text") -> dict:
    """Convert a text to upper case, at the speed that the test sets."""
    for seconds in pauses(record, "browsed"):
        time.sleep(seconds)
    return record | {input_key: record[input_key].upper()}


@data_register("data.browsed", _concurrency_mode="thread")
def judge(record: dict) -> list[dict] | dict:
    """Drop every seventh text, and fail at some with a message that looks like Markdown.

    No text fails when a file ``mended`` exists.
    """
    number = record["id"]
    if number % 50 == 1 and not (HOME / "mended").exists():
        msg = f"<b>no</b> | `answer` to *{number}*, see [this](http://example.org)"
        raise ValueError(msg)
    if number % 100 == 2 and not (HOME / "mended").exists():
        raise TimeoutError("the model did not answer within 30 s")
    verdict = None if number % 40 == 3 else "fine"
    return [] if number % 7 == 0 else record | {"verdict": verdict}


@data_register("data.browsed", _concurrency_mode="thread")
def mark(record: dict, input_key: str = "text", end: str = "!") -> dict:
    """Put a mark at the end of a text.

    Args:
        record: With a text.
        input_key: Where the text is.
        end: The mark.
    """
    return record | {"marked": record[input_key] + end, "length": len(record[input_key])}


with pipeline("browsed") as ppl:
    ppl.loud = shout()
    ppl.judged = judge()
    ppl.marked = mark(end="!")

defs = build_definitions(
    ppl,
    source=HOME / "texts.jsonl",
    **SETTINGS,
    max_error_rate={"judged": 0.01},
    jobs=["pipeline", "preview", "retry"],
    checks={
        "judged": [checks.no_nulls("verdict"), checks.max_dropped(0.5)],
        "marked": [checks.row_count(min=100, max=1000), checks.unique("id")],
    },
)
