"""Check that streams resume at every position, and that operators read what they declare."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import PositionedStream

if TYPE_CHECKING:
    from dagster_dataops.operators.definition.operator import Operator
    from dagster_dataops.records import Record

__all__ = ["assert_reads_declared", "assert_resumes_anywhere"]


def __dir__() -> list[str]:
    return __all__


_MAX_ITEMS: Final = 200


def assert_reads_declared(operator: "Operator", records: "Sequence[Record]") -> None:
    """Check that outcomes that ``_reuse_outcomes`` keeps are right for records that have changed.

    The operator runs over the records. Then one column after the other is removed and gets other
    values, columns are added, and their order changes: where the outcome of a record is kept, it
    must be what a call returns. Nothing is exported, and clients are called.

    Args:
        operator: A record operator.
        records: Some examples that succeed and that have all columns; a few are enough.

    Raises:
        AssertionError: A kept outcome differs, two calls differ, or the operator reads a column
            that its ``reads`` do not name.
        OperatorOptionError: It is no record operator.
    """
    from dagster_dataops.pipelines.read_check import fault_of_reads

    fault = fault_of_reads(operator, records)
    assert not fault, f"operator {operator!r}: {fault}"  # noqa: S101


def assert_resumes_anywhere(
    make_stream: Callable[[], Operations],
    limit: int = _MAX_ITEMS,
    *,
    workers: Iterable[int] = (),
) -> None:
    """Stop a stream after every number of items, and resume it in a new stream from its JSON state.

    Args:
        make_stream: Returns a new stream or builder on each call.
        limit: The number of items to check.
        workers: Numbers of worker processes with which to read the stream. Items and states must be
            the same for all of them, and the stream resumes at each position with each in turn.

    Raises:
        AssertionError: Other items follow, a returned state changed later, or a used stream does
            not go back.
    """
    expected, states = _record_states(_pipeline(make_stream), limit)
    used = _pipeline(make_stream)
    for position, state in enumerate(states):
        stream = _pipeline(make_stream)
        stream.load_state_dict(json.loads(state))
        again = _state_text(stream)
        assert again == state, f"at position {position}: loaded {state}, which became {again}"  # noqa: S101
        _compare(stream, expected, position, "in a new stream")
        used.load_state_dict(json.loads(state))
        _compare(used, expected, position, "in a stream that was read before")
    _check_workers(make_stream, list(workers), expected, states)


def _check_workers(
    make_stream: Callable[[], Operations],
    numbers: list[int],
    expected: list[Any],
    states: list[str],
) -> None:
    for number in numbers:
        results = _record_states(_pipeline(make_stream).workers(number), len(expected))
        assert results[0] == expected, f"workers={number}: got {results[0]}, expected {expected}"  # noqa: S101
        for position, (state, same) in enumerate(zip(results[1], states, strict=True)):
            where = f"workers={number}, at position {position}"
            assert state == same, f"{where}: the state is {state}, with one process {same}"  # noqa: S101
    for position, (state, number) in enumerate(zip(states, cycle(numbers), strict=False)):
        stream = _pipeline(make_stream).workers(number)
        stream.load_state_dict(json.loads(state))
        _compare(stream, expected, position, f"with workers={number}")


def _pipeline(make_stream: Callable[[], Operations]) -> PositionedStream:
    stream = make_stream()
    if isinstance(stream, DataPipelineBuilder):
        return stream.and_return()
    assert isinstance(stream, PositionedStream), f"a {type(stream).__name__} is not a stream"  # noqa: S101
    return stream


def _record_states(stream: PositionedStream, limit: int) -> tuple[list[Any], list[str]]:
    items: list[Any] = []
    states = [stream.state_dict()]
    written = [json.dumps(states[0])]
    for item in islice(stream, limit):
        items.append(json.dumps(item, default=repr))
        states.append(stream.state_dict())
        written.append(json.dumps(states[-1]))
    for position, (state, text) in enumerate(zip(states, written, strict=True)):
        assert json.dumps(state) == text, f"the state at position {position} has changed since"  # noqa: S101
    return items, written


def _state_text(stream: PositionedStream) -> str:
    return json.dumps(stream.state_dict())


def _compare(stream: PositionedStream, expected: list[Any], position: int, where: str) -> None:
    left = len(expected) - position
    items = [json.dumps(item, default=repr) for item in islice(stream, left)]
    message = f"at position {position}, {where}: got {items}, expected {expected[position:]}"
    assert items == expected[position:], message  # noqa: S101
