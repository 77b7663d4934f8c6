import math

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.workers import protocol
from dagster_dataops.execution.workers.protocol import STOP, Kind, Mode, Range
from dagster_dataops.operators.dispositions import emitting

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
    for notes in (None, SpanNotes.of(3, [(1, emitting(0))], {"cost": 0.5})):
        message = protocol.pack_span(offset, span, notes)
        assert message[0] == Kind.SPAN
        assert protocol.unpack_span(message) == (offset, span, notes)


@given(st.floats(0, 1e9))
def test_finished_ranges_arrive_with_their_duration(seconds: float) -> None:
    message = protocol.pack_done(seconds)
    assert message[0] == Kind.DONE
    assert protocol.unpack_done(message) == seconds


@given(_LARGE)
def test_a_range_that_ends_sooner_tells_where(end: int) -> None:
    message = protocol.pack_shortened(end)
    assert message[0] == Kind.SHORTENED
    assert protocol.unpack_shortened(message) == end


def test_failures_arrive_without_their_exception() -> None:
    message = protocol.pack_failed(Failure("E", "é", "t", ValueError(), 2, 7))
    assert message[0] == Kind.FAILED
    assert protocol.unpack_failed(message) == Failure("E", "é", "t", None, 2, 7)


def test_faults_arrive_whatever_their_text_is() -> None:
    message = protocol.pack_fault("full \ud800 é")
    assert message[0] == Kind.FAULT
    assert protocol.unpack_fault(message) == "full \\ud800 é"
