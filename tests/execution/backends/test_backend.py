"""Tests of the registry of backends."""

from importlib import import_module
from inspect import signature

import pytest

from dagster_dataops.assets.launchpad.config_schema import COROUTINE_MODE_TYPE, MODE_TYPE
from dagster_dataops.execution.backends.backend import BACKENDS, Backend
from dagster_dataops.operators.options.concurrency_modes import MODES


def test_every_mode_has_a_backend():
    assert list(BACKENDS) == list(MODES)


@pytest.mark.parametrize("module", BACKENDS.values())
def test_every_backend_runs_a_job(module):
    expected = list(signature(Backend.run).parameters)[1:]
    assert list(signature(import_module(module).run).parameters) == expected


def test_the_launchpad_offers_every_mode_that_an_operator_can_have():
    assert COROUTINE_MODE_TYPE.config_values == list(MODES)
    assert MODE_TYPE.config_values == [
        name for name, mode in MODES.items() if not mode.only_coroutines
    ]
