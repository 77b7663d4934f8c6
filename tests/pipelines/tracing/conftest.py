"""A pipeline of three nodes below a root of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Drop, Pipeline, config, data_register, pipeline

data_register.new_group("traced")


@data_register("data.traced", _concurrency_mode="single", _stop_after_failures=0)
def work(record: dict[str, Any]) -> Any:
    if record["n"] % 5 == 3:
        return Drop("three")
    if record["n"] % 5 == 4:
        raise ValueError("four")
    return [record] * (record["n"] % 5)  # 0 is dropped without a reason


@data_register("data.traced", rewrite_func="forward_batch_input")
def turned(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records[::-1]


class EveryOther(data_register.new_group("traced")):  # type: ignore[misc]
    """Keeps every other record."""

    def sketch(self, record: dict[str, Any]) -> int:
        if record["n"] == 7:
            raise ValueError("seven")
        return 0

    def keep(self, sketches: Iterator[int]) -> Iterator[bool]:
        for at, _ in enumerate(sketches):
            yield at % 2 == 0


def write_source(path: Path, count: int = 20) -> Path:
    path.write_text("".join(f"{json.dumps({'n': n})}\n" for n in range(count)))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """The root of the results."""
    with config.temporary(data_process_path=tmp_path / "root", data_process_resume=True):
        yield tmp_path / "root"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of 20 records."""
    return write_source(tmp_path / "in.jsonl")


@pytest.fixture
def made(root: Path, source: Path) -> Callable[..., Pipeline]:
    """Make the pipeline with these settings of its first node."""

    def make(**settings: Any) -> Pipeline:
        with pipeline("docs") as ppl:
            ppl.first = work(**settings)
            ppl.second = EveryOther(**settings)
            ppl.third = turned(**settings)
        ppl.materialize(source)
        return ppl

    return make
