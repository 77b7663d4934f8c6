"""Classes that type checkers keep from changes."""

import pickle
from dataclasses import fields, replace

import pytest

from dagster_dataops.foundation.frozen import frozen


@frozen(eq=True, kw_only=False)
class Point:
    x: int
    y: int = 0


@frozen()
class Work:
    name: str


def test_objects_of_equal_values_are_equal_and_have_one_hash():
    assert Point(1) == Point(1, 0)
    assert {Point(1), Point(1, 0)} == {Point(1)}
    assert Point(1) != Point(2)


def test_objects_without_eq_are_compared_by_identity():
    work = Work(name="clean")
    assert work == work
    assert work != Work(name="clean")


def test_fields_are_named_unless_the_class_says_otherwise():
    with pytest.raises(TypeError):
        Work("clean")


def test_they_are_dataclasses_that_can_be_replaced_and_pickled():
    assert [field.name for field in fields(Point)] == ["x", "y"]
    assert replace(Point(1), y=2) == Point(1, 2)
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
