"""Failures of records."""

import pytest

from dagster_dataops.operators.chains.chain_calls import PartCall, PartTimes, chain_function
from tests.execution.engine import failure_of


def test_messages_are_cut_and_always_text() -> None:
    failure = failure_of(ValueError("x" * 100_000 + "\ud800"))
    assert len(failure.message) == 64 << 10
    failure.traceback_text.encode()
    assert failure_of(ValueError("\ud800")).message == "\\ud800"


def test_the_innermost_calls_of_a_deep_recursion_are_shown() -> None:
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


def test_the_traceback_of_a_part_begins_in_the_part() -> None:
    def fail(record: object) -> None:
        raise ValueError("no")

    run = chain_function([PartCall("a", fail, asynchronous=False)], PartTimes(1))
    texts = []
    for _ in range(2):  # the first record is timed, and takes another way
        with pytest.raises(ValueError, match="no") as caught:
            run({})
        below = caught.value.with_traceback(caught.tb.tb_next)  # without the frame of this test
        texts.append(failure_of(below).traceback_text)
    first, second = texts
    assert first == second
    assert "in fail" in first.splitlines()[1]
