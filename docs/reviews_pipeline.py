"""A code location to photograph: reviews, graded by a model that takes its time.

It is run by ``screenshots.py``, in whose server the module ``paced`` and its folder are.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import dagster as dg
from paced import HOME, pauses

from dagster_dataops import DataOpsResource, build_definitions, checks, data, data_register
from dagster_dataops import pipeline as pipeline_of

OPINIONS = ("Does what it says.", "Broke on the second day.", "Would buy it again.", "Too loud.")


def reviews() -> Iterator[dict[str, Any]]:
    """Yield 3,000 reviews, the first of them empty, some of them twice."""
    for number in range(3000):
        order = number - 4 if number % 50 == 49 else number
        text = "" if number == 0 else f"Order {order}:  {OPINIONS[order % 4]}"
        yield {"id": number, "product": f"P-{number % 40:03}", "text": text}


@data_register("data.reviews", _max_workers=32)
async def grade(record: dict, input_key: str = "text", model: str = "small") -> dict:
    """Have a model give a review one to five stars.

    Reads ``input_key``; writes ``stars`` and ``model``.
    """
    for seconds in pauses(record, "graded"):
        await asyncio.sleep(seconds)
    if not record[input_key]:
        return record | {"stars": None, "model": model}
    number = record["id"]
    if number % 71 == 5:
        raise TimeoutError(f"no answer within 30 s, request {number:05}")
    if number % 333 == 7:
        raise ValueError("the model said: as a language model, I ...")
    return record | {"stars": 1 + number % 5, "model": model}


@data_register("data.reviews", rewrite_func="forward_batch_input")
def rank(graded: list[dict], facts: list[dict]) -> list[dict]:
    """Join grades with the other columns of the texts, the best first."""
    letters = {fact["id"]: fact["letters"] for fact in facts}
    joined = [grade | {"letters": letters.get(grade["id"])} for grade in graded]
    return sorted(joined, key=lambda record: -(record["stars"] or 0))


@data_register("data.reviews", _concurrency_mode="thread", _max_workers=4)
def count_letters(record: dict, input_key: str = "text") -> dict:
    """Count the letters of a text."""
    return record | {"letters": sum(map(str.isalpha, record[input_key]))}


with pipeline_of("reviews") as ppl:
    ppl.clean = data.text.Normalize(input_key="text", _max_workers=1)
    ppl.unique = data.dedup.Exact(input_key="text", _max_workers=1)
    ppl.graded = grade()
    ppl.add("letters", count_letters(), inputs=[ppl.unique])
    ppl.add("ranked", rank(), inputs=[ppl.graded, ppl.letters])

defs = dg.Definitions.merge(
    dg.Definitions(executor=dg.in_process_executor),  # of "Materialize all"
    build_definitions(
        ppl,
        source=reviews,
        resource=DataOpsResource(root=str(HOME / "results")),
        schedule="0 2 * * *",
        max_error_rate={"graded": 0.01},
        checks={
            "unique": [checks.unique("text"), checks.max_dropped(0.2)],
            "graded": [checks.required_columns("stars"), checks.no_nulls("stars", severity="WARN")],
            "ranked": [checks.row_count(min=1000)],
        },
    ),
)
