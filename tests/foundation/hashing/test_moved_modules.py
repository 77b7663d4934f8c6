"""Tests of foundation.hashing.moved_modules: digests keep the names that modules had first."""

import importlib.util
import zoneinfo

import pytest

from dagster_dataops.foundation.hashing.moved_modules import _FORMER, counted_module
from dagster_dataops.foundation.hashing.values import function_name


@pytest.mark.parametrize("present", _FORMER)
def test_each_name_is_that_of_a_module_that_exists(present):
    assert importlib.util.find_spec(f"dagster_dataops.{present}") is not None


def test_a_moved_module_counts_under_its_former_name():
    present = "dagster_dataops.foundation.hashing.values"
    assert counted_module(present) == "dagster_dataops.hashing.values"
    assert counted_module("dagster_dataops.training.cooking") == "dagster_dataops.cooking"
    for other in ("dagster_dataops.foundation.hashing_more", "dagster_dataops.data", "json"):
        assert counted_module(other) == other


def test_a_method_without_a_module_has_a_name():
    assert function_name(zoneinfo.ZoneInfo("UTC").__reduce__()[0]).startswith("None.")
