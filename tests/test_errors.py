"""Tests of dagster_dataops.errors."""

import copy
import importlib
import inspect
import pickle
import re
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest

from dagster_dataops import errors
from dagster_dataops.errors import DataOpsError
from tests.each import each

SAMPLES = {int: 7, float: 1.5, str: "some text with {braces}", object: ["anything", 1]}


def every_subclass(cls: type) -> list[type]:
    below = [found for child in cls.__subclasses__() for found in every_subclass(child)]
    return [cls, *below]


ALL = [cls for cls in every_subclass(DataOpsError) if cls.__module__ == errors.__name__]


def sample(cls):
    hints = get_type_hints(cls)
    return cls(*(SAMPLES[hints.get(name, str)] for name in cls.facts))


@each("cls", ALL)
@each("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickle(cls, protocol):
    error = sample(cls)

    again = pickle.loads(pickle.dumps(error, protocol))

    assert type(again) is cls
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.args == error.args


CLASS = re.compile(
    r"^class \w+\((?:\w*(?:Error|Exception|Warning|SkipItem|EndsCall))\b", re.MULTILINE
)


def exceptions_of_all_modules():
    """Return all classes of exceptions, also those of modules that are imported when used."""
    package = Path(errors.__file__).parent
    for path in package.rglob("*.py"):
        if CLASS.search(path.read_text()):
            parts = path.relative_to(package.parent).with_suffix("").parts
            importlib.import_module(".".join(parts))
    return [cls for cls in every_subclass(BaseException) if cls.__module__.startswith(package.name)]


def constructed(cls):
    """Return an exception with a value of its type for each argument of its class."""
    if issubclass(cls, DataOpsError):
        return cls(*(value_of(get_type_hints(cls).get(name, str)) for name in cls.facts))
    if "__init__" not in vars(cls):
        return cls("some text")
    values = [
        (each, value_of(get_type_hints(cls.__init__)[each.name]))
        for each in list(inspect.signature(cls.__init__).parameters.values())[1:]
    ]
    at_place = [value for each, value in values if each.kind is not each.KEYWORD_ONLY]
    by_name = {each.name: value for each, value in values if each.kind is each.KEYWORD_ONLY}
    return cls(*at_place, **by_name)


def value_of(kind):
    """Return a value of a type; of a named tuple one with values for all fields without default."""
    if issubclass(plain := get_origin(kind) or kind, tuple):
        fields = [name for name in plain._fields if name not in plain._field_defaults]
        return plain(*(value_of(get_type_hints(plain)[name]) for name in fields))
    return {bool: True, list: [3], BaseException: None}.get(plain, SAMPLES.get(plain, "a text"))


def test_every_exception_of_the_package_survives_pickle():
    classes = exceptions_of_all_modules()
    assert len(classes) > 120
    for cls in classes:
        error = constructed(cls)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again), again.args) == (
            cls, str(error), vars(error), error.args
        ), cls  # fmt: skip


@each("cls", ALL)
def test_an_error_survives_copying(cls):
    again = copy.deepcopy(sample(cls))

    assert str(again) == str(sample(cls))
    assert vars(again) == vars(sample(cls))


@each("cls", ALL)
def test_every_fact_is_in_the_sentence(cls):
    error = sample(cls)

    assert all(str(getattr(error, name)) in str(error) for name in cls.facts)


@each("cls", ALL)
def test_every_error_is_documented_in_the_tree(cls):
    assert cls.__doc__
    assert cls.__name__ in errors.__doc__


@each("cls", [cls for cls in ALL if cls.facts])
def test_missing_facts_are_refused(cls):
    with pytest.raises(ValueError, match="zip"):
        cls()


def test_an_unknown_operator_is_an_attribute_error_so_that_hasattr_works():
    assert issubclass(errors.UnknownOperatorError, AttributeError)


def test_a_chained_cause_does_not_keep_an_error_from_pickling():
    error = sample(errors.StorageError)
    error.__cause__ = OSError(28, "No space left on device")

    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_reason_with_a_full_stop_has_only_one_in_the_sentence():
    stopped = errors.RunStoppedError("data.demo.ask", "The budget is spent.")

    assert str(stopped) == (
        "Operator data.demo.ask stopped: The budget is spent. Finished records are kept."
    )
    assert stopped.reason == "The budget is spent."


@each(
    "error",
    [
        errors.InputError("https://ann:pa55@host/a.jsonl", "gone"),
        errors.InputError("a.jsonl", "404 for zip://a::https://ann:p%40ss5@host:80/b?q=1"),
        errors.StorageError("s3://key:pa55@host/b", "read", "refused"),
        errors.MetadatasetError("https://ann:pa55@host/m.yaml", 3, "a", "bad"),
        errors.InputError("https://:pa55@host/a.jsonl", "gone"),
    ],
)
def test_logins_of_urls_are_not_shown(error: errors.DataOpsError):
    assert "(hidden)@host" in str(error)
    assert "ss5" not in str(error)
    assert "pa55" not in str(error)


@each("url", ["s3://b/a@b.jsonl", "abfs://box@account/a", "https://a@b/c:d", "http://h/x:y@z"])
def test_urls_without_a_password_are_shown_whole(url: str):
    assert url in str(errors.InputError(url, "gone"))
