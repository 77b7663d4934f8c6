"""Tests of dagster_dataops.checkpoints.journal.stored_outcomes."""

from pathlib import Path

from dagster_dataops.checkpoints.journal.stored_outcomes import StoredOutcome, outcomes_in
from tests.journals import Span, SpansEntry, line_digest, spans_frame

_DIGESTS = [line_digest(b"%d" % number) for number in range(4)]


def _span(number: int, output: int, *, error: int = 0) -> Span:
    return Span(
        start=number * 10,
        length=10,
        records=1,
        emitted=1 if output else 0,
        dropped=0,
        failed=1 if error else 0,
        output_bytes=output,
        error_bytes=error,
        input_check=0,
        output_check=number,
    )


def _frames(segment: int, offset: int, spans: list[Span], digests: list[bytes]) -> bytes:
    return spans_frame(SpansEntry.of(segment, offset, spans, digests))


def _outcomes(tmp_path: Path, journal: bytes) -> list[StoredOutcome]:
    (tmp_path / "journal").write_bytes(journal)
    return list(outcomes_in(tmp_path / "journal"))


def test_outcomes_lie_one_after_the_other_behind_the_errors_of_records_that_failed(
    tmp_path: Path,
) -> None:
    spans = [_span(0, 5), _span(1, 0, error=100), _span(2, 7), _span(3, 3)]
    assert _outcomes(tmp_path, _frames(1, 50, spans, _DIGESTS)) == [
        StoredOutcome(_DIGESTS[0], 1, 50, 5, 1, 0),
        StoredOutcome(_DIGESTS[2], 1, 155, 7, 1, 2),
        StoredOutcome(_DIGESTS[3], 1, 162, 3, 1, 3),
    ]


def test_a_record_that_failed_has_no_outcome_even_if_lines_are_there(tmp_path: Path) -> None:
    spans = [_span(0, 5, error=9), _span(1, 6)]
    (only,) = _outcomes(tmp_path, _frames(1, 0, spans, _DIGESTS[:2]))
    assert only.digest == _DIGESTS[1]


def test_digests_whose_spans_are_damaged_are_not_taken_for_those_of_the_next(
    tmp_path: Path,
) -> None:
    first = _frames(1, 0, [_span(0, 5)], _DIGESTS[:1])
    second = _frames(1, 5, [_span(1, 6)], _DIGESTS[1:2])
    between = second.index(b"DOJ1", 4)  # where the digests end and the spans begin
    damaged = bytearray(first)
    damaged[-1] ^= 1  # in the first spans
    assert _outcomes(tmp_path, bytes(damaged) + second[between:]) == []
    (only,) = _outcomes(tmp_path, bytes(damaged) + second)
    assert only.digest == _DIGESTS[1]


def test_digests_of_another_number_of_spans_count_for_nothing(tmp_path: Path) -> None:
    frames = _frames(1, 0, [_span(0, 5), _span(1, 6)], _DIGESTS[:1])
    assert _outcomes(tmp_path, frames) == []
