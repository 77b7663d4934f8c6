"""Defaults of the concurrency modes."""

import pytest

from dagster_dataops.operators.options.concurrency_modes import MODES
from dagster_dataops.operators.options.settings import (
    ExecutionSettings,
)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_a_default_number_of_workers(mode):
    resolved = ExecutionSettings(concurrency_mode=mode).resolved(asynchronous=False)

    assert resolved.max_workers == MODES[mode].default_workers() >= 1


def test_waiting_work_has_as_many_calls_in_flight_as_the_reference():
    assert 32 <= MODES["thread"].default_workers() == MODES["async"].default_workers() <= 128
    assert MODES["single"].default_workers() == 1


@pytest.mark.parametrize(
    ("mode", "workers", "number"),
    [
        ("single", 1, 150),
        ("thread", 32, 150),
        ("async", 1000, 4000),
        ("process", 2, 500),
        ("process", 64, 150),
    ],
)
def test_failures_that_stop_a_run_depend_on_the_calls_in_flight(mode, workers, number):
    settings = ExecutionSettings(concurrency_mode=mode, max_workers=workers)
    assert settings.resolved(asynchronous=False).stop_after_failures == number
    never = ExecutionSettings(stop_after_failures=0).over(settings)
    assert never.resolved(asynchronous=False).stop_after_failures == 0
