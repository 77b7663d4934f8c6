"""Groups of operators as attributes of `data`."""

import copy
import pickle
import textwrap
from importlib import import_module

import cloudpickle
import pytest

import dagster_dataops
from dagster_dataops.errors import UnknownOperatorError


def test_the_error_for_an_unknown_group_names_the_groups():
    dagster_dataops.data_register.new_group("public_api")

    with pytest.raises(UnknownOperatorError, match=r"Did you mean data\.public_api"):
        _ = dagster_dataops.data.public_ap


@pytest.mark.parametrize("name", ["data", "crude"])
def test_a_function_that_refers_to_a_module_can_be_sent_to_a_worker(name):
    """That of a notebook is sent by value, with what it refers to."""
    module = import_module(f"dagster_dataops.{name}")
    assert pickle.loads(cloudpickle.dumps(module)) is module
    assert copy.deepcopy(module) is module


def test_an_unknown_group_cannot_be_imported(run_python):
    run_python(
        textwrap.dedent(
            """
            try:
                from dagster_dataops.data import nobody_registered_this
            except ImportError:
                pass
            else:
                raise AssertionError
            """
        )
    )
