"""Tests of dagster_dataops.checkpoints.journal.span_notes."""

import itertools
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.span_notes import SpanNotes, joined
from dagster_dataops.operators.outcomes.dispositions import (
    USUAL,
    disposition,
    dropped_for,
    emitting,
)
from tests.journals import JournalWriter, Span, SpansEntry, read_journal

_DISPOSITIONS = st.one_of(
    st.integers(0, 400).map(emitting),
    st.sampled_from(["too_short", "a: b", "é"]).map(dropped_for),
    st.lists(st.integers(0, 9), max_size=3).map(lambda parts: disposition(entered=parts)),
)
_RECORDS = st.lists(st.one_of(st.just(USUAL), _DISPOSITIONS), max_size=600)
_COUNTS = st.dictionaries(st.text(max_size=5), st.integers(-5, 5) | st.floats(-1, 1), max_size=3)


def noted(records: list[bytes], counts: dict[str, float] | None = None) -> SpanNotes | None:
    return SpanNotes.of(len(records), enumerate(records), counts or {})


def dispositions(notes: SpanNotes | None, records: int) -> list[bytes]:
    if notes is None or not notes.table:
        return [USUAL] * records
    found = dict(notes.unusual())
    return [found.get(position, USUAL) for position in range(len(notes.codes))]


@given(_RECORDS, _COUNTS)
def test_notes_are_read_as_they_were_packed(records: list[bytes], counts: dict[str, float]) -> None:
    notes = noted(records, counts)
    if notes is None:
        assert set(records) <= {USUAL}
        return
    packed = notes.pack()
    assert SpanNotes.unpack(b"x" + packed + b"y", 1) == (notes, 1 + len(packed))
    assert SpanNotes.from_text(notes.to_text()) == notes
    assert dispositions(notes, len(records)) == records


@given(_RECORDS, st.integers(0, 600), st.integers(0, 600))
def test_parts_that_are_joined_again_are_the_whole(records: list[bytes], a: int, b: int) -> None:
    notes = noted(records)
    cuts = sorted([0, min(a, len(records)), min(b, len(records)), len(records)])
    parts = [
        (last - first, notes.part(first, last) if notes else None)
        for first, last in itertools.pairwise(cuts)
    ]
    assert dispositions(joined(parts, {}), len(records)) == records


@given(st.binary(max_size=60))
def test_bytes_that_are_no_notes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        SpanNotes.unpack(data)


@given(_RECORDS.filter(bool), st.data())
def test_damaged_notes_are_refused_or_have_as_many_records(
    records: list[bytes], data: st.DataObject
) -> None:
    notes = noted(records, {"a": 1})
    assert notes is not None
    packed = bytearray(notes.pack())
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found, _ = SpanNotes.unpack(bytes(packed))
    except ValueError:
        return
    assert len(found.codes) in {0, found.records}


def test_usual_records_without_counts_have_no_notes() -> None:
    assert noted([USUAL] * 3) is None
    assert joined([(3, None), (2, None)], {}) is None


_SPANS = [Span(n * 10, 10, 2, 1, 1, 0, 5, 0, n, n) for n in range(3)]
_NOTES = [noted([USUAL, emitting(0)]), None, noted([emitting(3), USUAL], {"cost": 0.5})]


def test_spans_whose_notes_are_damaged_count_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    writer = JournalWriter(path)
    writer.spans(SpansEntry.of(1, 0, _SPANS, notes=_NOTES))
    size = path.stat().st_size
    writer.spans(SpansEntry.of(1, 15, _SPANS[1:2]))
    writer.close()
    whole, alone = read_journal(path)
    assert isinstance(whole, SpansEntry)
    assert whole.notes == _NOTES
    data = path.read_bytes()
    for at in range(size):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert list(read_journal(path)) == [alone], at
    for cut in range(size):
        path.write_bytes(data[:cut])
        assert list(read_journal(path)) == [], cut


@given(st.lists(st.lists(st.sampled_from([USUAL, emitting(0)]), min_size=1, max_size=9)))
def test_spans_whose_records_have_the_same_dispositions_are_joined(
    spans: list[list[bytes]],
) -> None:
    parts = [(len(span), noted(span)) for span in spans]
    whole = [one for span in spans for one in span]
    assert dispositions(joined(parts, {}), len(whole)) == whole


@given(st.lists(st.booleans(), max_size=200) | st.lists(st.integers(0, 3), max_size=200))
def test_records_that_are_not_kept_are_dropped_without_a_reason(emitted: list[int]) -> None:
    wanted = [emitting(number) for number in emitted]
    assert dispositions(SpanNotes.of_emitted(emitted), len(emitted)) == wanted
    found = SpanNotes.of_emitted(emitted)
    assert found is None or SpanNotes.unpack(found.pack())[0] == found


def test_notes_of_many_spans_are_compressed_together(tmp_path: Path) -> None:
    notes = [noted([dropped_for(f"reason {at % 7}"), USUAL]) for at in range(2000)]
    spans = [Span(10 * at, 10, 2, 1, 1, 0, 2, 0, 0, 0) for at in range(2000)]
    journal = JournalWriter(tmp_path / "journal")
    journal.spans(SpansEntry.of(1, 0, spans, notes=notes))
    journal.close()
    assert (tmp_path / "journal").stat().st_size < 40_000
    (entry,) = read_journal(tmp_path / "journal")
    assert isinstance(entry, SpansEntry)
    assert entry.notes == notes


def test_equal_dispositions_that_were_read_are_one_object() -> None:
    packed = [SpanNotes(1, {"n": at}, (dropped_for("x"),), array("B", [1])) for at in range(3)]
    tables = [SpanNotes.unpack(one.pack())[0].table for one in packed]
    assert tables[0][0] is tables[1][0] is tables[2][0]
