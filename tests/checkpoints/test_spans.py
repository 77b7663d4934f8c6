import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.spans import Span, columns_of, pack, unpack

_FIELD = st.integers(0, 2**32 - 1)
_SPANS = st.lists(
    st.builds(Span, st.integers(0, 2**64 - 1), *[_FIELD] * 9), min_size=1, max_size=30
)


def span(start: int, length: int) -> Span:
    return Span(start, length, 1, 1, 0, 0, 10, 0, 0, 0)


@given(_SPANS)
def test_packed_spans_come_back_equal(spans: list[Span]) -> None:
    assert unpack(pack(columns_of(spans)), len(spans)) == columns_of(spans)


@given(_SPANS, st.data())
def test_cut_or_padded_spans_are_refused(spans: list[Span], data: st.DataObject) -> None:
    packed = pack(columns_of(spans))
    cut = data.draw(st.integers(1, len(packed) - 1))
    for damaged in (packed[:cut], packed + b"x"):
        try:
            assert unpack(damaged, len(spans)) == columns_of(spans)  # zlib ignores what follows
        except ValueError:
            continue


def test_a_wrong_count_is_refused() -> None:
    with pytest.raises(ValueError, match="are not 3 spans"):
        unpack(pack(columns_of([span(0, 5)] * 2)), 3)
