"""Tests of dagster_dataops.models.replies.prices."""

import pytest

from dagster_dataops import Price
from dagster_dataops.models.replies.reply import Usage

USAGE = Usage(tokens_in=1000, tokens_cached=400, tokens_out=10, tokens_reasoning=5)


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (Price(2.0), 2000),
        (Price(2.0, 10.0), 2100),
        (Price(2.0, 10.0, 0.5), 1200 + 200 + 100),
        (Price(2.0, 0.0, 0.0), 1200),
    ],
)
def test_the_cost_of_a_call(price: Price, cost: float):
    assert price.cost(USAGE) == pytest.approx(cost / 1e6)
