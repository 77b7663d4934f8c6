import random
from statistics import quantiles

import pytest

from dagster_dataops.library.stats.number_summary import NumberSummary


def summary_of(numbers):
    summary = NumberSummary()
    for number in numbers:
        summary.add(number)
    return summary


def test_quantiles_of_few_numbers_are_exact():
    numbers = [random.Random(3).gauss(0, 1) for _ in range(1001)]
    exact = quantiles(numbers, n=100, method="inclusive")

    summary = summary_of(numbers)

    found = [summary.quantile(share / 100) for share in range(1, 100)]
    assert found == pytest.approx(exact)
    assert summary.quantile(0) == min(numbers)
    assert summary.quantile(1) == max(numbers)


@pytest.mark.parametrize("draw", ["random", "sorted", "falling"])
def test_quantiles_of_many_numbers_are_close_in_rank(draw):
    generator = random.Random(5)
    numbers = [generator.paretovariate(0.5) for _ in range(60_000)]
    if draw in {"sorted", "falling"}:
        numbers.sort(reverse=draw == "falling")

    summary = summary_of(numbers)

    assert len(summary.centroids()) <= 11_000
    for share in (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999):
        found = summary.quantile(share)
        below = sum(number < found for number in numbers) / len(numbers)
        upto = sum(number <= found for number in numbers) / len(numbers)
        allowed = 0.01 * (share * (1 - share)) ** 0.5
        assert below - allowed <= share <= upto + allowed


def test_one_number_is_every_quantile():
    assert summary_of([7.0]).quantile(0.3) == 7.0


def test_the_deviation_is_that_of_a_sample():
    summary = summary_of([5.0, 1.0, 3.0])

    assert (summary.count, summary.mean, summary.deviation()) == (3, 3.0, 2.0)
    assert summary_of([4.0]).deviation() == 0.0
