"""Tests of dagster_dataops.models.replies.prices."""

import pytest

from dagster_dataops import Price, Reply

USAGE = Reply(
    text="",
    finish_reason="stop",
    refusal=None,
    model="m",
    replayed=False,
    raw={"usage": {"prompt_tokens": 1000, "cached_tokens": 400, "completion_tokens": 10}},
).usage


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
