import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.dedup.algorithms.lsh_bands import buckets_of, choose_bands


@pytest.mark.parametrize(
    ("threshold", "permutations", "shape"),
    [(0.8, 128, (14, 8)), (0.5, 128, (32, 4)), (1.0, 16, (1, 16)), (0.5, 1, (1, 1))],
)
def test_the_shape_follows_from_the_threshold(threshold, permutations, shape) -> None:
    assert choose_bands(threshold, permutations) == shape


@given(st.floats(0.01, 1.0), st.integers(1, 64))
def test_a_shape_never_needs_more_rows_than_there_are(threshold, permutations) -> None:
    bands, rows = choose_bands(threshold, permutations)
    assert 1 <= bands * rows <= permutations


def test_signatures_share_the_buckets_of_the_bands_in_which_they_agree() -> None:
    one = buckets_of([1, 2, 3, 4, 5, 6, 9], 3, 2)
    other = buckets_of([1, 2, 3, 5, 5, 6, 8], 3, 2)
    assert [a == b for a, b in zip(one, other, strict=True)] == [True, False, True]


def test_equal_bands_at_different_places_are_different_buckets() -> None:
    buckets = buckets_of([7, 7, 7, 7], 2, 2)
    assert len(set(buckets)) == 2
