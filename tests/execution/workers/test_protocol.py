import math

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.execution.records.record_failures import Failed, Failure
from dagster_dataops.execution.workers import protocol
from dagster_dataops.execution.workers.protocol import STOP, Kind, Mode, Range

_LARGE = st.integers(0, 2**64 - 1)
_SMALL = st.integers(0, 2**32 - 1)


_SPAN = st.builds(Span, _LARGE, _LARGE, *[_SMALL] * 4, _LARGE, _LARGE, _SMALL, _SMALL)


@given(_LARGE, _LARGE, st.sampled_from(Mode), st.floats(0) | st.just(math.inf))
def test_ranges_arrive_as_they_were_sent(start: int, end: int, mode: Mode, patience: float) -> None:
    for order in (Range(start, end, mode, patience), Range(start, end)):
        message = protocol.pack_range(order)
        assert protocol.unpack_range(message) == order
        assert message != STOP


@given(_LARGE, _SPAN)
def test_spans_arrive_as_they_were_sent(offset: int, span: Span) -> None:
    message = protocol.pack_span(offset, span)
    assert message[0] == Kind.SPAN
    assert protocol.unpack_span(message) == (offset, span)


@given(st.floats(0, 1e9))
def test_finished_ranges_arrive_with_their_duration(seconds: float) -> None:
    message = protocol.pack_done(seconds)
    assert message[0] == Kind.DONE
    assert protocol.unpack_done(message) == seconds


@given(_LARGE)
def test_a_shortened_range_reports_its_end(end: int) -> None:
    message = protocol.pack_shortened(end)
    assert message[0] == Kind.SHORTENED
    assert protocol.unpack_shortened(message) == end


def test_failures_arrive_without_their_line() -> None:
    message = protocol.pack_failed(Failed(7, b"{}", Failure("E", "é", "t", ValueError())))
    assert message[0] == Kind.FAILED
    assert protocol.unpack_failed(message) == Failed(7, b"", Failure("E", "é", "t"))


def test_faults_with_any_text_arrive() -> None:
    message = protocol.pack_fault("full \ud800 é")
    assert message[0] == Kind.FAULT
    assert protocol.unpack_fault(message) == "full \\ud800 é"
