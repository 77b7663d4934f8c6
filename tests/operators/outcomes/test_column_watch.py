"""Tests of dagster_dataops.operators.outcomes.column_watch."""

import asyncio
from typing import Any

import pytest

from dagster_dataops.errors import MissingColumnError
from dagster_dataops.operators.options.read_columns import keys_of
from dagster_dataops.operators.outcomes.column_watch import (
    ColumnWatch,
    Patience,
    WatchedPart,
    columns_seen,
    missing_counts,
    never_found,
)
from dagster_dataops.operators.outcomes.record_context import StopRun


def same(given: Any) -> Any:
    return given


def failing(given: Any) -> Any:
    raise ZeroDivisionError


def watch(*keys: str, strict: bool = False, **kind: bool) -> ColumnWatch:
    return ColumnWatch([WatchedPart(keys_of(keys), **kind)], chained=False, strict=strict)


def test_calls_that_succeed_count_what_their_record_lacks() -> None:
    watched = watch("a", "m.x")
    call = watched.around(same)
    for record in ({"a": 1, "m": {"x": 1}}, {"a": 1}, {}, {"m": {}}):
        assert call(record) is record
    with pytest.raises(ZeroDivisionError):
        watched.around(failing)({})
    counts = watched.take()
    assert missing_counts(counts) == {"missing_columns/a": 2, "missing_columns/m.x": 3}
    assert watched.take() == {}


def test_what_an_operator_writes_into_its_record_is_not_there_before() -> None:
    watched = watch("a")

    def write(record: dict) -> dict:
        record["a"] = 1
        return record

    watched.around(write)({})
    assert missing_counts(watched.take()) == {"missing_columns/a": 1}


def test_a_batch_counts_its_records_but_for_those_that_failed() -> None:
    watched = watch("a", batch=True)
    call = watched.around(lambda given: [ValueError() if "bad" in one else one for one in given])
    call([{"a": 1}, {}, {"bad": 1}, {}])
    call([{"a": 1}])
    assert missing_counts(watched.take()) == {"missing_columns/a": 2}


def test_strict_watches_let_the_record_fail() -> None:
    watched = watch("a", strict=True)
    with pytest.raises(MissingColumnError):
        watched.around(same)({"b": 1})
    assert watched.take() == {}


def test_coroutines_are_watched() -> None:
    watched = watch("a", asynchronous=True)

    async def call(given: Any) -> Any:
        return given

    asyncio.run(watched.around_async(call)({}))
    assert missing_counts(watched.take()) == {"missing_columns/a": 1}


def chained(watched: ColumnWatch, last: Any = same) -> Any:
    first, second = watched.part(0, same), watched.part(1, last)
    return watched.around(lambda record: second(first(record)))


def parts(**kind: bool) -> list[WatchedPart]:
    return [WatchedPart(keys_of(["a"])), WatchedPart(keys_of(["b"]), **kind)]


def test_parts_of_a_chain_count_together_or_not_at_all() -> None:
    watched = ColumnWatch(parts(), chained=True, strict=False)
    chained(watched)({})
    with pytest.raises(ZeroDivisionError):
        chained(watched, failing)({})
    counts = watched.take()
    rows = {"missing_columns/one: a": 1, "missing_columns/two: b": 1}
    assert missing_counts(counts, ["one", "two"]) == rows
    assert never_found(counts) == [(1, "b", 1)]
    assert columns_seen(counts, 1) == []  # the record had none


def test_the_columns_of_a_record_that_lacked_one_are_told() -> None:
    watched = ColumnWatch(parts(), chained=True, strict=False)
    call = chained(watched)
    for record in ({"a": 1, "c": 2}, {"d": 1}):
        call(record)
    counts = watched.take()
    assert columns_seen(counts, 1) == ["a", "c"]
    assert columns_seen(counts, 0) == []


def test_a_later_part_has_found_a_key_also_if_its_record_fails() -> None:
    watched = ColumnWatch(parts(), chained=True, strict=False)
    with pytest.raises(ZeroDivisionError):
        chained(watched, failing)({"b": 1})
    chained(watched)({"a": 1})
    counts = watched.take()
    assert never_found(counts) == []
    call = chained(watched)
    call({"a": 1, "b": 1})
    assert watched.take() == {".finds 1 b": 1}
    call({"a": 1, "b": 1})
    assert watched.take() == {}  # said once


def test_many_records_without_a_column_end_the_patience_of_all_tasks() -> None:
    patience = Patience()
    calls = 0

    async def ask(given: Any) -> Any:
        nonlocal calls
        calls += 1
        return given

    async def run(record: dict, number: int) -> None:
        for _ in range(number):
            watched = ColumnWatch(
                parts(asynchronous=True), chained=True, strict=False, patience=patience
            )
            await watched.around_async(watched.part(1, ask))(dict(record))

    asyncio.run(run({"a": 1}, 999))
    with pytest.raises(StopRun, match="first 1,000 records .* part 2 .* 'b'"):
        asyncio.run(run({"a": 1}, 2))
    assert calls == 999
    patience.find(".finds 1 b")
    asyncio.run(run({"a": 1}, 5))
