"""Tests of dagster_dataops.models.replies.latency."""

from collections import Counter

import pytest

from dagster_dataops.models.replies.latency import latency_count, latency_quantile


def rows_of(*seconds: float) -> dict[str, float]:
    return dict(Counter(latency_count(one).partition("/")[2] for one in seconds))


@pytest.mark.parametrize("share", [0.5, 0.95, 1.0])
def test_quantiles_are_exact_to_five_percent(share: float):
    seconds = [0.01 * number for number in range(1, 1001)]

    assert latency_quantile(rows_of(*seconds), share) == pytest.approx(10 * share, rel=0.06)


def test_sums_of_two_runs_have_the_quantiles_of_both():
    both = Counter(rows_of(*[0.1] * 94)) + Counter(rows_of(*[3.0] * 6))

    assert latency_quantile(both, 0.5) == pytest.approx(0.1, rel=0.06)
    assert latency_quantile(both, 0.95) == pytest.approx(3.0, rel=0.06)


def test_no_time_at_all_and_no_calls_have_a_quantile():
    assert latency_quantile(rows_of(0.0), 0.5) == pytest.approx(0.001, rel=0.06)
    assert latency_quantile({}, 0.5) == 0
