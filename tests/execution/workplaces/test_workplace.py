"""Tests of the workplaces of the package."""

from importlib import import_module
from inspect import signature

import pytest

from dagster_dataops.assets.launchpad.config_schema import mode_type
from dagster_dataops.operators.options.concurrency_modes import MODES, PACKAGE_MODES
from dagster_dataops.workplaces import Workplace


@pytest.mark.parametrize("mode", PACKAGE_MODES)
def test_every_workplace_takes_what_is_run_what_is_open_and_where_outcomes_go(mode):
    module = MODES[mode].workplace
    expected = list(signature(Workplace.run).parameters)[1:]
    assert list(signature(import_module(module).run).parameters) == expected


def test_the_launchpad_offers_every_mode_that_an_operator_can_have():
    assert mode_type(coroutines=True).config_values == list(MODES)
    assert mode_type(coroutines=False).config_values == [
        name for name, mode in MODES.items() if not mode.only_coroutines
    ]
