"""Tests of the messages between a run and its workers."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.execution.engine import STOP, Kind, Mode, Range, protocol
from tests.journals import Span

_LARGE = st.integers(0, 2**64 - 1)
_SMALL = st.integers(0, 2**32 - 1)
_SPAN = st.builds(Span, _LARGE, _LARGE, *[_SMALL] * 4, _LARGE, _LARGE, _SMALL, _SMALL)


@given(_LARGE, _LARGE, st.sampled_from(Mode), st.floats(0) | st.just(math.inf))
def test_ranges_arrive_as_they_were_sent(start: int, end: int, mode: Mode, patience: float) -> None:
    for order in (Range(start, end, mode, patience), Range(start, end)):
        message = protocol.pack_range(order)
        assert protocol.unpack_range(message) == order
        assert message != STOP


@given(_LARGE, _SPAN, st.floats(0, 1e9))
def test_messages_arrive_as_they_were_sent(offset: int, span: Span, seconds: float) -> None:
    message = protocol.pack(Kind.SPAN, offset, *span)
    assert message[0] == Kind.SPAN
    assert protocol.unpack(message) == [offset, *span]
    assert protocol.unpack(protocol.pack(Kind.DONE, seconds)) == [seconds]
    assert protocol.unpack(protocol.pack(Kind.READY)) == []


def test_faults_with_any_text_arrive() -> None:
    message = protocol.pack_fault("full \ud800 é")
    assert message[0] == Kind.FAULT
    assert protocol.unpack(message) == ["full \\ud800 é"]
