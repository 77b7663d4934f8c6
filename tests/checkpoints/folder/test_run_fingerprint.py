import itertools
from dataclasses import replace
from typing import Any

import pytest

from dagster_dataops import chain, data_register
from dagster_dataops.checkpoints.folder.run_fingerprint import in_words
from tests.each import each
from tests.execution.helpers import act, act_async
from tests.journals import RunFingerprint

_ONE = RunFingerprint.of(act(tag="a").__dataops__, "xxh3:1")


def test_a_fingerprint_comes_back_from_json() -> None:
    assert RunFingerprint.from_json(_ONE.to_json()) == _ONE


@pytest.mark.parametrize("parts", [None, [], {}, {"format": "1"}, {**_ONE.to_json(), "more": "x"}])
def test_a_malformed_fingerprint_is_none(parts: object) -> None:
    assert RunFingerprint.from_json(parts) is None


@pytest.mark.parametrize(
    ("other", "parts", "words"),
    [
        (RunFingerprint.of(act(tag="a").__dataops__, "xxh3:1"), [], ""),
        (RunFingerprint.of(act(tag="b").__dataops__, "xxh3:1"), ["options"], "its options"),
        (RunFingerprint.of(act(tag="a").__dataops__, "xxh3:2"), ["input"], "the input"),
        (
            RunFingerprint.of(act_async(tag="a").__dataops__, "xxh3:1"),
            ["operator", "code"],
            "the operator and its code",
        ),
    ],
)
def test_differences_are_named(other: RunFingerprint, parts: list[str], words: str) -> None:
    assert _ONE.differences(other) == parts
    assert in_words(parts) == words


@pytest.mark.parametrize("mode", ["process", "thread", "single"])
def test_how_an_operator_is_run_is_no_part_of_it(mode: str) -> None:
    operator = act(tag="a", _concurrency_mode=mode, _max_workers=9, _ignore_errors=False)
    assert RunFingerprint.of(operator.__dataops__, "xxh3:1") == _ONE


def test_the_server_of_a_model_is_a_part_if_there_is_one() -> None:
    one, other = (replace(_ONE, server=server) for server in ("http://a", "http://b"))

    assert "server" not in _ONE.to_json()
    assert RunFingerprint.from_json(one.to_json()) == one
    assert one.differences(other) == _ONE.differences(one) == one.differences(_ONE) == ["server"]
    assert in_words(["server"]).startswith("the server of its model")


def test_records_that_name_no_server_are_of_the_one_that_adopts_them() -> None:
    adopting = replace(_ONE, server="http://a", adopts=True)

    assert _ONE.differences(adopting) == []
    assert replace(_ONE, server="http://b").differences(adopting) == ["server"]
    assert RunFingerprint.from_json(adopting.to_json()) == adopting


class Shown(data_register.new_group("fingerprint_tests")):
    """Shows its option."""

    def __init__(self, value: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.value = value

    def forward(self, record):
        return record | {"shown": repr(self.value)}


def _of_constant(value: Any) -> Any:
    @data_register("data.fingerprint_tests")
    def shown(record):
        return record | {"shown": repr(value)}

    return shown()


@each("make", [Shown, _of_constant, lambda value: chain(Shown(value), Shown(1))])
@each(
    "values",
    [
        *(([1, 2], (1, 2)), ([], ()), ({1}, frozenset({1})), ([[1]], [(1,)])),
        *(({"a": [1]}, {"a": (1,)}), ({"a": 1, "b": 2}, {"b": 2, "a": 1})),
        (({"a": 1, "b": [2]}), ({"a": 1, "b": (2,)})),
    ],
)
def test_what_this_version_has_stored_is_not_compared_by_the_rules_of_an_earlier_one(
    make: Any, values: tuple[Any, ...]
) -> None:
    for one, other in itertools.permutations(values, 2):
        stored = RunFingerprint.from_json(RunFingerprint.of(make(one).__dataops__, "x").to_json())
        assert stored is not None
        assert stored.differences(RunFingerprint.of(make(one).__dataops__, "x")) == []
        assert stored.differences(RunFingerprint.of(make(other).__dataops__, "x")) in (
            ["options"],
            ["code"],
        )
