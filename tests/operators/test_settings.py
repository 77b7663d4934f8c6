"""Tests of dagster_dataops.operators.settings."""

import itertools

import pytest

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.settings import (
    MODES,
    SETTING_NAMES,
    ExecutionSettings,
    default_workers,
    parse_settings,
)


def test_the_settings_are_those_of_the_document():
    assert set(SETTING_NAMES) >= {
        "_concurrency_mode",
        "_max_workers",
        "_save_data",
        "_ignore_errors",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_concurrency_mode", "threads"),
        ("_concurrency_mode", "Thread"),
        ("_concurrency_mode", 3),
        ("_concurrency_mode", ["thread"]),
        ("_max_workers", 0),
        ("_max_workers", -1),
        ("_max_workers", 1.5),
        ("_max_workers", "4"),
        ("_max_workers", True),
        ("_save_data", 1),
        ("_save_data", "yes"),
        ("_ignore_errors", "no"),
        ("_ignore_errors", 0),
    ],
)
def test_an_impossible_value_names_operator_setting_and_value(name, value):
    with pytest.raises(OperatorOptionError, match=r"demo\.step") as caught:
        parse_settings("demo.step", {name: value})

    assert caught.value.option == name
    assert repr(value) in str(caught.value)


def test_a_wrong_mode_is_told_the_right_ones():
    with pytest.raises(OperatorOptionError, match="must be one of process, thread, async, single"):
        parse_settings("demo.step", {"_concurrency_mode": "fork"})


def test_none_counts_as_not_given():
    assert parse_settings("demo.step", dict.fromkeys(SETTING_NAMES)) == ExecutionSettings()


@pytest.mark.parametrize(
    ("field", "high", "low"),
    [
        ("concurrency_mode", "thread", "single"),
        ("max_workers", 1, 9),
        ("save_data", False, True),
        ("ignore_errors", False, True),
    ],
)
def test_settings_stand_over_lower_ones_where_they_say_something(field, high, low):
    upper, lower = ExecutionSettings(**{field: high}), ExecutionSettings(**{field: low})

    assert getattr(upper.over(lower), field) == high
    assert getattr(ExecutionSettings().over(lower), field) == low


def test_what_nobody_says_is_the_default():
    resolved = ExecutionSettings().resolved(asynchronous=False)

    assert (resolved.concurrency_mode, resolved.save_data, resolved.ignore_errors) == (
        "process",
        True,
        True,
    )
    assert ExecutionSettings().resolved(asynchronous=True).concurrency_mode == "async"


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_a_default_number_of_workers(mode):
    resolved = ExecutionSettings(concurrency_mode=mode).resolved(asynchronous=False)

    assert resolved.max_workers == default_workers(mode) >= 1


def test_waiting_work_has_as_many_calls_in_flight_as_the_reference():
    assert 32 <= default_workers("thread") == default_workers("async") <= 128
    assert default_workers("single") == 1


@pytest.mark.parametrize(("save", "ignore"), list(itertools.product([True, False], repeat=2)))
def test_switches_are_kept(save, ignore):
    settings = parse_settings("demo.step", {"_save_data": save, "_ignore_errors": ignore})
    resolved = settings.resolved(asynchronous=False)

    assert (resolved.save_data, resolved.ignore_errors) == (save, ignore)
