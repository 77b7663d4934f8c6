from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.spans import Span
from dagster_dataops.execution import messages
from dagster_dataops.execution.messages import STOP, Kind, Mode, Range
from dagster_dataops.execution.settling import Failed, Failure

_LARGE = st.integers(0, 2**64 - 1)
_SMALL = st.integers(0, 2**32 - 1)


@given(_LARGE, _LARGE, st.sampled_from(Mode))
def test_ranges_arrive_as_they_were_sent(start: int, end: int, mode: Mode) -> None:
    message = messages.pack_range(Range(start, end, mode))
    assert messages.unpack_range(message) == Range(start, end, mode)
    assert message != STOP


@given(_LARGE, st.builds(Span, _LARGE, *[_SMALL] * 8))
def test_spans_arrive_as_they_were_sent(offset: int, span: Span) -> None:
    message = messages.pack_span(offset, span)
    assert message[0] == Kind.SPAN
    assert messages.unpack_span(message) == (offset, span)


@given(st.floats(0, 1e9))
def test_durations_arrive_as_they_were_sent(seconds: float) -> None:
    message = messages.pack_done(seconds)
    assert message[0] == Kind.DONE
    assert messages.unpack_done(message) == seconds


def test_failures_arrive_without_their_line() -> None:
    message = messages.pack_failed(Failed(7, b"{}", Failure("E", "é", "t", ValueError())))
    assert message[0] == Kind.FAILED
    assert messages.unpack_failed(message) == Failed(7, b"", Failure("E", "é", "t"))


def test_faults_arrive_whatever_their_text_is() -> None:
    message = messages.pack_fault("full \ud800 é")
    assert message[0] == Kind.FAULT
    assert messages.unpack_fault(message) == "full \\ud800 é"
