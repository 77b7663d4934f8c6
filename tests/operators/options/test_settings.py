"""Tests of execution settings and concurrency modes."""

import pickle

import pytest

from dagster_dataops import chain, data
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.data import data_register
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.concurrency_modes import MODES
from dagster_dataops.operators.options.settings import (
    SETTING_NAMES,
    execution_settings,
    parse_settings,
)
from tests.each import each
from tests.nodes import ExecutionSettings


def test_the_settings_are_those_of_the_document():
    assert set(SETTING_NAMES) >= {
        "_concurrency_mode",
        "_max_workers",
        "_save_data",
        "_ignore_errors",
    }
    assert set(SETTING_NAMES) >= {"_timeout", "_retries", "_retry_on", "_backoff"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_concurrency_mode", "threads"),
        ("_concurrency_mode", "Thread"),
        ("_concurrency_mode", 3),
        ("_concurrency_mode", ["thread"]),
        ("_max_workers", -1),
        ("_max_workers", 1.5),
        ("_max_workers", "4"),
        ("_max_workers", True),
        ("_save_data", 1),
        ("_save_data", "yes"),
        ("_ignore_errors", "no"),
        ("_ignore_errors", 0),
        ("_timeout", -1),
        ("_timeout", "5"),
        ("_timeout", True),
        ("_timeout", float("inf")),
        ("_timeout", float("nan")),
        ("_retries", -1),
        ("_retries", 1.0),
        ("_retries", True),
        ("_stop_after_failures", -1),
        ("_stop_after_failures", 2.0),
        ("_stop_after_failures", False),
        ("_retry_on", []),
        ("_retry_on", ["not a name"]),
        ("_retry_on", [int]),
        ("_retry_on", [ValueError("one")]),
        ("_retry_on", ""),
        ("_retry_on", 3),
        ("_backoff", -0.5),
        ("_backoff", "1s"),
    ],
)
def test_an_invalid_value_names_operator_setting_and_value(name, value):
    with pytest.raises(OperatorOptionError, match=r"demo\.step") as caught:
        parse_settings("demo.step", {name: value})

    assert caught.value.option == name
    assert repr(value) in str(caught.value)


def test_a_wrong_mode_is_refused_with_the_valid_ones():
    with pytest.raises(OperatorOptionError, match="must be one of process, thread, async, single"):
        parse_settings("demo.step", {"_concurrency_mode": "fork"})


def test_no_workers_count_as_not_given():
    settings = parse_settings("demo.step", {"_max_workers": 0})

    assert settings == ExecutionSettings()
    assert settings.over(ExecutionSettings(max_workers=5)).max_workers == 5
    assert settings.resolved(asynchronous=False).max_workers == MODES["process"].default_workers()


def test_none_means_not_given():
    assert parse_settings("demo.step", dict.fromkeys(SETTING_NAMES)) == ExecutionSettings()


@pytest.mark.parametrize(
    ("field", "high", "low"),
    [
        ("concurrency_mode", "thread", "single"),
        ("max_workers", 1, 9),
        ("save_data", False, True),
        ("ignore_errors", False, True),
        ("timeout", 0, 9.5),
        ("retries", 0, 3),
        ("stop_after_failures", 0, 3),
        ("retry_on", ("OSError",), (ValueError,)),
        ("backoff", 0.0, 2.0),
    ],
)
def test_given_settings_override_lower_ones(field, high, low):
    upper, lower = ExecutionSettings(**{field: high}), ExecutionSettings(**{field: low})

    assert getattr(upper.over(lower), field) == high
    assert getattr(ExecutionSettings().over(lower), field) == low


def test_missing_settings_have_their_defaults():
    resolved = ExecutionSettings().resolved(asynchronous=False)

    assert resolved.concurrency_mode == "process"
    assert (resolved.save_data, resolved.ignore_errors) == (True, True)
    assert (resolved.timeout, resolved.retries, resolved.retry_on) == (None, 0, None)
    assert resolved.backoff > 0
    given = parse_settings("demo.step", {"_save_data": False, "_ignore_errors": False})
    resolved = given.resolved(asynchronous=False)
    assert (resolved.save_data, resolved.ignore_errors) == (False, False)
    assert ExecutionSettings().resolved(asynchronous=True).concurrency_mode == "async"


def test_zero_seconds_lift_the_time_limit_of_a_registration():
    lower, upper = ExecutionSettings(timeout=5), parse_settings("demo.step", {"_timeout": 0})

    assert upper.over(lower).resolved(asynchronous=False).timeout is None
    assert lower.resolved(asynchronous=False).timeout == 5


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (OSError, (OSError,)),
        ("TimeoutError", ("TimeoutError",)),
        ([OSError, "httpx.HTTPError"], (OSError, "httpx.HTTPError")),
        ((KeyError,), (KeyError,)),
        ({KeyError}, (KeyError,)),
    ],
)
def test_retry_on_may_be_a_class_a_name_or_several(given, kept):
    assert parse_settings("demo.step", {"_retry_on": given}).retry_on == kept


def test_time_limits_and_retries_are_not_part_of_the_fingerprint(registry):
    @registry("data.demo")
    def plain(record: dict) -> dict:
        return record

    @registry("data.demo", _timeout=5, _retries=2, _retry_on="OSError", _backoff=1)
    def patient(record: dict) -> dict:
        return record

    fingerprints = [
        RunFingerprint.of(operator.__dataops__, "input")
        for operator in (plain(), plain(_timeout=1, _retries=1), plain(_retry_on=[ValueError]))
    ]
    assert fingerprints[0] == fingerprints[1] == fingerprints[2]
    assert patient().__dataops__.resolved.timeout == 5
    assert patient().__dataops__.options_digest == plain().__dataops__.options_digest


def test_every_setting_is_described_and_has_a_resolved_value():
    settings = execution_settings()
    resolved = ExecutionSettings().resolved(asynchronous=False)

    assert {f"_{name}" for name in settings} == set(SETTING_NAMES)
    assert all(setting.description.endswith(".") for setting in settings.values())
    assert all(hasattr(resolved, name) for name in settings)


class Kept(data_register.new_group("removed_settings")):
    def forward(self, data: dict) -> None:
        """Keep the record."""


def define():
    class Split(data_register.new_group("removed_settings")):
        _part_records = 7

        def forward(self, data: dict) -> None:
            """Keep the record."""


@each(
    "use",
    [
        lambda: data.removed_settings.Kept(_part_records=4),
        lambda: data_register("data.removed_settings", _part_records=0),
        lambda: chain(data.removed_settings.Kept(), _part_records=4),
        define,
    ],
)
def test_a_removed_setting_is_refused_with_what_takes_its_place(use):
    with pytest.raises(OperatorOptionError, match=r"_part_records.*records_per_file") as caught:
        use()

    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


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
