from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.workplaces import Interval
from tests.journals import Span, SpansEntry, SpanTable


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
