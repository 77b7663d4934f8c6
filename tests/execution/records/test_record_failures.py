"""Failures of records."""

import orjson

from dagster_dataops.execution.records.record_failures import (
    Failed,
    Failure,
    error_line,
    failure_of,
)


def test_messages_are_cut_and_always_text() -> None:
    failure = failure_of(ValueError("x" * 100_000 + "\ud800"))
    assert len(failure.message) == 64 << 10
    failure.traceback_text.encode()
    assert failure_of(ValueError("\ud800")).message == "\\ud800"


def test_an_error_line_holds_the_record_and_where_it_was() -> None:
    line = error_line(Failed(17, b'{"a": 1}', Failure("E", "m", "t")), "g.o", position=3, output=9)
    assert orjson.loads(line) == {
        "offset": 17,
        "length": 8,
        "position": 3,
        "output": 9,
        "dropped": 0,
        "operator": "g.o",
        "exception": "E",
        "message": "m",
        "traceback": "t",
        "attempts": 1,
        "input": {"a": 1},
    }
    raw = error_line(Failed(0, b"\xffx" * 50_000, Failure("E", "m", "t")), "g.o")
    assert orjson.loads(raw)["input"] == "\\xffx" * (32 << 10)


def test_of_deep_recursion_the_innermost_calls_are_told() -> None:
    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        raise ValueError("at the bottom")

    try:
        deeper(600)
    except ValueError as error:
        text = failure_of(error).traceback_text
    assert "at the bottom" in text
    assert "Previous line repeated 196 more times" in text
