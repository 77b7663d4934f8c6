"""Groups of operators as attributes of `data`."""

import textwrap

import pytest

import dagster_dataops
from dagster_dataops.errors import UnknownOperatorError


def test_the_error_for_an_unknown_group_names_the_groups():
    dagster_dataops.data_register.new_group("public_api")

    with pytest.raises(UnknownOperatorError, match=r"Did you mean data\.public_api"):
        _ = dagster_dataops.data.public_ap


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
