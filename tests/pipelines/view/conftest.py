"""Results that the tests of the view look at."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Drop, Pipeline, data, data_register, pipeline
from tests.viewed_pages import Viewer, viewing

COUNT = 300
HOSTILE = '<script>document.title="broken"</script>'
data_register.new_group("looked_at")


@data_register("data.looked_at", _concurrency_mode="single", _stop_after_failures=0)
def judge(record: dict[str, Any]) -> Any:
    """Drop, split, change and fail, by the number of the record."""
    number = record["n"]
    if number % 10 == 3:
        return Drop("three & <b>more</b>")
    if number % 10 == 4:
        raise ValueError(f"record {number} is {HOSTILE}")
    if number % 50 == 5:
        raise KeyError("five")
    if number % 10 == 6:
        return [record, {**record, "copy": True}]
    return {**record, "text": record["text"].replace("brown", "red")}


def row(number: int) -> dict[str, Any]:
    """Return a record of the source."""
    words = f"the quick brown fox {number} jumps over {HOSTILE} while nine others look on"
    return {"n": number, "text": words, HOSTILE: "key", "level": {"high": number > 150}}


def judged() -> Pipeline:
    """Return the pipeline."""
    with pipeline("looks") as ppl:
        ppl.judged = judge()
        ppl.long = data.filters.WordCount(min_words=3)
        ppl.parts = data.sample.Split({"train": 0.8, "test": 0.2})
    return ppl


def write_source(path: Path) -> Path:
    """Write the records, and return the path."""
    path.write_text("".join(f"{json.dumps(row(n))}\n" for n in range(COUNT)))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of records."""
    return write_source(tmp_path / "in.jsonl")


@pytest.fixture
def viewer(root: Path, source: Path) -> Iterator[Viewer]:
    """A viewer of the root after a run."""
    judged().materialize(source)
    with viewing(root) as found:
        yield found
