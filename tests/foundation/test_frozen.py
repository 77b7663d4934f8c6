"""Dataclasses of which Python compiles no methods."""

import pickle
from dataclasses import field, fields, replace

import pytest

from dagster_dataops.foundation.frozen import changeable, frozen


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


@changeable
class Attempt:
    work: Work
    notes: list[str] = field(default_factory=list)
    began: float = field(init=False)

    def __post_init__(self):
        self.began = 2.5


@changeable
class Further(Attempt):
    kept: int = field(default=0, compare=False)


@frozen(eq=True, kw_only=False)
class Bucket:
    url: str
    options: dict[str, str] = field(hash=False)
    reached: bool = field(default=False, compare=False)


def test_fields_are_named_unless_the_class_says_otherwise():
    with pytest.raises(TypeError, match="Work takes no fields by position"):
        Work("clean")


def test_what_is_missing_unknown_twice_or_too_much_is_named():
    with pytest.raises(TypeError, match="Point needs 'x'"):
        Point(y=1)
    with pytest.raises(TypeError, match="Point has no 'z'"):
        Point(1, z=2)
    for values, named in (((1, 2), {"y": 2}), ((1, 2, 3), {})):
        with pytest.raises(TypeError, match="Point takes x, y by position, each once"):
            Point(*values, **named)


def test_what_is_left_out_has_a_default_of_its_own_and_more_is_set_after_it():
    first, second = Attempt(work=Work(name="a")), Further(work=Work(name="b"), kept=2)
    first.notes.append("resumed")

    assert (first.notes, second.notes) == (["resumed"], [])
    assert (first.began, second.began, second.kept) == (2.5, 2.5, 2)


def test_fields_that_are_no_part_of_the_value_are_neither_compared_nor_hashed():
    assert Bucket("s3://a", {}) == Bucket("s3://a", {}, reached=True)
    assert Bucket("s3://a", {}) != Bucket("s3://a", {"region": "b"})
    assert hash(Bucket("s3://a", {})) == hash(Bucket("s3://a", {"region": "b"}))
    assert Bucket("s3://a", {}) != Point(1)


def test_they_are_dataclasses_that_can_be_replaced_and_pickled():
    assert [field.name for field in fields(Point)] == ["x", "y"]
    assert replace(Point(1), y=2) == Point(1, 2)
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
