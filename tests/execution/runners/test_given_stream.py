"""Tests of given_stream: detection and names of streams."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import DataPipeline, read_jsonl, read_sequence
from dagster_dataops.data import data_register
from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.execution.runners.given_stream import (
    as_reading,
    is_stream,
    name_of_stream,
    of_first,
    of_partition,
)
from dagster_dataops.testing import Operations
from tests.execution.helpers import write_input
from tests.nodes import given_stream


class Reader:
    """An object that makes a stream, like a reader."""

    name = "my-reader"

    def stream(self) -> Operations:
        return read_sequence([{"n": 1}])


@data_register("data.given")
def step(record: dict[str, Any]) -> None: ...


def test_streams_builders_and_objects_that_make_streams_are_streams(tmp_path: Path) -> None:
    rows = read_sequence([1])
    assert all(map(is_stream, [rows, rows.and_return(), Reader()]))
    dataset = write_input(tmp_path / "in.jsonl", [])
    others = [[], {}, "docs.jsonl", tmp_path, dataset, Reader, step(), lambda: rows]
    assert not any(map(is_stream, others))


def test_an_object_that_makes_a_stream_is_opened() -> None:
    assert list(as_reading(Reader(), "x")) == [{"n": 1}]
    with pytest.raises(StreamArgumentError, match="it must be a stream, not a list"):
        as_reading([], "x")


@pytest.mark.parametrize(
    ("stream", "name"),
    [
        (Reader(), "my_reader"),
        (read_jsonl("/data/docs.v2.jsonl.gz").shuffle(3), "docs"),
        (read_jsonl("a-b.jsonl"), "a_b"),
        (DataPipeline.concat(read_jsonl("one.jsonl"), read_jsonl("two.jsonl")), "one"),
        (read_sequence([1]).shuffle(3), "shuffle"),
    ],
)
def test_a_stream_has_a_name(stream: object, name: str) -> None:
    assert name_of_stream(stream) == name


def test_a_stream_that_never_ends_names_the_stage_that_makes_it_so() -> None:
    endless = DataPipeline.sample([read_sequence([1]).repeat(), DataPipeline.count()])
    with pytest.raises(StreamDefinitionError, match=r"never ends.*\.take\(n\)"):
        as_reading(endless, "x")
    assert list(as_reading(endless.take(0), "x")) == []


def test_a_function_is_called_for_a_partition_and_for_the_first_items() -> None:
    operator = given_stream("x", lambda key: read_sequence(list(key)))
    assert list(of_partition(operator, "abc").stream()) == ["a", "b", "c"]  # type: ignore[attr-defined]
    first = of_first(of_partition(operator, "abc"), 2)
    assert list(first.stream()) == ["a", "b"]  # type: ignore[attr-defined]
    assert of_first(step(), 2) is not None
