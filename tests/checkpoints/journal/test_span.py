from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.span import columns_of, pack, unpack
from dagster_dataops.workplaces import Interval
from tests.journals import JournalWriter, Span, SpansEntry
from tests.nodes import CheckpointContent

_COUNT = st.integers(0, 2**32 - 1)
_BYTES = st.integers(0, 2**64 - 1)
_FIELDS = [_BYTES, _BYTES, *[_COUNT] * 4, _BYTES, _BYTES, _COUNT, _COUNT]
_SPANS = st.lists(st.builds(Span, *_FIELDS), min_size=1, max_size=30)


def span(start: int, length: int) -> Span:
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
        unpack(pack(columns_of([span(0, 5)] * 2)), 3)
