"""Helpers for tests of streams with custom stages."""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import Reading

_MOST: Final = 200


def assert_resumes_anywhere(make_stream: Callable[[], Operations], limit: int = _MOST) -> None:
    """Check that a stream resumes after every number of items, with its state sent as JSON.

    Args:
        make_stream: Returns a new stream: a pipeline, or a builder of one.
        limit: Maximum number of items to check.

    Raises:
        AssertionError: The items differ, a state changed after it was returned, or a stream that
            was read before does not go back to a state.
    """
    expected, states = _recorded(_pipeline(make_stream), limit)
    used = _pipeline(make_stream)
    for position, state in enumerate(states):
        stream = _pipeline(make_stream)
        stream.load_state_dict(json.loads(state))
        again = _written(stream)
        assert again == state, f"after {position} items: loaded {state}, which became {again}"  # noqa: S101
        _compare(stream, expected, position, "in a new stream")
        used.load_state_dict(json.loads(state))
        _compare(used, expected, position, "in a stream that was read before")


def _pipeline(make_stream: Callable[[], Operations]) -> Reading:
    made = make_stream()
    if isinstance(made, DataPipelineBuilder):
        return made.and_return()
    assert isinstance(made, Reading), f"a {type(made).__name__} is no stream"  # noqa: S101
    return made


def _recorded(stream: Reading, limit: int) -> tuple[list[Any], list[str]]:
    items: list[Any] = []
    given = [stream.state_dict()]
    written = [json.dumps(given[0])]
    for item in islice(stream, limit):
        items.append(json.dumps(item, default=repr))
        given.append(stream.state_dict())
        written.append(json.dumps(given[-1]))
    for position, (state, text) in enumerate(zip(given, written, strict=True)):
        assert json.dumps(state) == text, f"the state after {position} items has changed since"  # noqa: S101
    return items, written


def _written(stream: Reading) -> str:
    return json.dumps(stream.state_dict())


def _compare(stream: Reading, expected: list[Any], position: int, where: str) -> None:
    left = len(expected) - position
    found = [json.dumps(item, default=repr) for item in islice(stream, left)]
    message = f"after {position} items, {where}: {found} came, not {expected[position:]}"
    assert found == expected[position:], message  # noqa: S101
