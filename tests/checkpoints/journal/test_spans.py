"""Spans: packed, in a table, and with notes."""

import itertools
from array import array
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.span import columns_of, pack, unpack
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes, joined
from dagster_dataops.operators.outcomes.dispositions import (
    USUAL,
    disposition,
    dropped_for,
    emitting,
)
from dagster_dataops.workplaces import Interval
from tests.journals import JournalWriter, Span, SpansEntry, SpanTable, read_journal
from tests.nodes import CheckpointContent

_COUNT = st.integers(0, 2**32 - 1)
_BYTES = st.integers(0, 2**64 - 1)
_FIELDS = [_BYTES, _BYTES, *[_COUNT] * 4, _BYTES, _BYTES, _COUNT, _COUNT]
_SPANS = st.lists(st.builds(Span, *_FIELDS), min_size=1, max_size=30)


def one_span(start: int, length: int) -> Span:
    return Span(start, length, 1, 1, 0, 0, 10, 0, 0, 0)


@given(_SPANS)
def test_packed_spans_come_back_equal(spans: list[Span]) -> None:
    assert unpack(pack(columns_of(spans)), len(spans)) == columns_of(spans)


def test_the_sizes_of_a_journalled_span_may_exceed_4_gib(tmp_path: Path) -> None:
    large = Span(0, 5 << 30, 1, 1, 0, 0, 6 << 30, 7 << 30, 0, 0)
    path = tmp_path / "journal"
    journal = JournalWriter(path)
    journal.spans(SpansEntry.of(1, 0, [large]))
    journal.spans(SpansEntry.of(1, 13 << 30, [large._replace(start=5 << 30)]))
    journal.close()
    table = CheckpointContent.read(tmp_path).table
    assert [(each, offset) for each, _, offset in table.ordered()] == [
        (large, 0),
        (large._replace(start=5 << 30), 13 << 30),
    ]
    assert table.gaps(Interval(0, 11 << 30)) == [Interval(10 << 30, 11 << 30)]


@given(_SPANS, st.data())
def test_cut_or_padded_spans_are_refused(spans: list[Span], data: st.DataObject) -> None:
    packed = pack(columns_of(spans))
    cut = data.draw(st.integers(1, len(packed) - 1))
    for damaged in (packed[:cut], packed + b"x"):
        try:
            assert unpack(damaged, len(spans)) == columns_of(spans)  # zlib ignores the rest
        except ValueError:
            continue


def test_a_wrong_count_is_refused() -> None:
    with pytest.raises(ValueError, match="are not 3 spans"):
        unpack(pack(columns_of([one_span(0, 5)] * 2)), 3)


def span(start: int, length: int, records: int = 1, output: int = 10, check: int = 0) -> Span:
    return Span(start, length, records, records, 0, 0, output, 0, 0, check)


def table_of(*spans: Span) -> SpanTable:
    table = SpanTable()
    for number, item in enumerate(spans):
        table.add(SpansEntry.of(number, 0, [item]))
    return table


def rows_of(table: SpanTable) -> list[tuple[int, int]]:
    return [(item.start, item.length) for item, _, _ in table.ordered()]


def test_ordering_is_by_input_position() -> None:
    assert rows_of(table_of(span(50, 10), span(0, 20), span(20, 30))) == [
        (0, 20),
        (20, 30),
        (50, 10),
    ]


def test_outputs_of_one_frame_lie_one_after_the_other() -> None:
    table = SpanTable()
    table.add(SpansEntry.of(3, 100, [span(0, 5, output=7), span(5, 5, output=9)]))
    assert [(segment, offset) for _, segment, offset in table.ordered()] == [(3, 100), (3, 107)]


def test_one_segment_with_all_outputs_in_input_order_is_found() -> None:
    table = SpanTable()
    assert table.only_segment() is None
    table.add(SpansEntry.of(3, 0, [span(0, 5, output=7), span(5, 5, output=9)]))
    assert table.only_segment() == (3, 16)
    table.add(SpansEntry.of(3, 16, [span(10, 5, output=1)]))
    assert table.only_segment() == (3, 17)


def test_a_segment_with_gaps_or_another_order_or_one_of_several_is_not_the_result() -> None:
    gap = table_of(span(0, 5, output=7))
    gap.add(SpansEntry.of(0, 8, [span(5, 5, output=9)]))
    turned = SpanTable()
    turned.add(SpansEntry.of(0, 0, [span(5, 5, output=7), span(0, 5, output=9)]))
    late = SpanTable()
    late.add(SpansEntry.of(0, 1, [span(0, 5)]))
    for table in (gap, turned, late, table_of(span(0, 5), span(5, 5))):
        assert table.only_segment() is None


def test_gaps_are_the_intervals_that_no_span_covers() -> None:
    table = table_of(span(10, 10), span(40, 20))
    assert table.gaps(Interval(0, 100)) == [Interval(0, 10), Interval(20, 40), Interval(60, 100)]
    assert table.gaps(Interval(10, 60)) == [Interval(20, 40)]
    assert SpanTable().gaps(Interval(3, 3)) == []


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.data())
def test_spans_and_gaps_together_cover_the_input(lengths: list[int], data: st.DataObject) -> None:
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    chosen = data.draw(st.lists(st.sampled_from(range(len(lengths))), unique=True))
    table = table_of(*[span(starts[place], lengths[place]) for place in chosen])
    pieces = [(item.start, item.start + item.length) for item, _, _ in table.ordered()]
    pieces += table.gaps(Interval(0, sum(lengths)))
    pieces.sort()
    assert pieces[0][0] == 0
    assert pieces[-1][1] == sum(lengths)
    assert all(one[1] == other[0] for one, other in pairwise(pieces))


def test_rejected_spans_are_forgotten_with_their_counts() -> None:
    table = table_of(span(0, 10, records=3), span(10, 10, records=4)).without([10])
    assert rows_of(table) == [(0, 10)]
    assert (table.records, table.input_bytes, len(table)) == (3, 10, 1)


def test_the_latest_of_overlapping_spans_counts() -> None:
    damaged, redone = span(0, 100), [span(0, 50), span(50, 50)]
    table = table_of(damaged, span(100, 10), *redone).without_overlaps()
    assert rows_of(table) == [(0, 50), (50, 50), (100, 10)]
    assert table_of(*redone, damaged).without_overlaps().ordered().__next__()[0] == damaged


def test_a_table_without_overlaps_stays_as_it_is() -> None:
    table = table_of(span(0, 10), span(10, 5))
    assert table.without_overlaps() is table


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=15))
def test_nothing_overlaps_once_overlaps_are_resolved(pieces: list[tuple[int, int]]) -> None:
    rows = rows_of(table_of(*[span(*piece) for piece in pieces]).without_overlaps())
    assert all(a[0] + a[1] <= b[0] for a, b in pairwise(rows))
    if pieces:
        assert pieces[-1] in rows


def test_a_column_is_in_the_order_of_the_input() -> None:
    table = table_of(span(50, 10, 3), span(0, 20, 1), span(20, 30, 2))
    assert table.column("start").tolist() == [0, 20, 50]
    assert table.column("records").tolist() == [1, 2, 3]


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


_NOTED = [Span(n * 10, 10, 2, 1, 1, 0, 5, 0, n, n) for n in range(3)]
_NOTES = [noted([USUAL, emitting(0)]), None, noted([emitting(3), USUAL], {"cost": 0.5})]


def test_spans_whose_notes_are_damaged_count_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    writer = JournalWriter(path)
    writer.spans(SpansEntry.of(1, 0, _NOTED, notes=_NOTES))
    size = path.stat().st_size
    writer.spans(SpansEntry.of(1, 15, _NOTED[1:2]))
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
