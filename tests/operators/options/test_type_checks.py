"""Tests of values against annotations."""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import pytest

from dagster_dataops.operators.options.type_checks import matches_type

T = TypeVar("T")


class Sized(Protocol):
    def size(self) -> int: ...


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1, int),
        (1, float),
        (True, bool),
        ("x", str),
        (None, None),
        (None, int | None),
        ("x", str | os.PathLike[str]),
        (Path("x"), str | os.PathLike[str]),
        ("a", Literal["a", "b"]),
        ([1, 2.5], list[float]),
        ({"a": 1}, dict[str, int]),
        ((1, 2), tuple[int, ...]),
        ([1], Sequence[int]),
        ((1, 2.5), tuple[int, float]),
        ({"a"}, Collection[str]),
        ({"a": ["b"]}, Mapping[str, Sequence[str]]),
        (1, Annotated[int, "a note"]),
        (len, Callable[[Any], int]),
        (1, Any),
        (1, "Unresolved"),
        (1, T),
        (1, Sized),
    ],
    ids=str,
)
def test_a_value_is_of_its_type(value, annotation):
    assert matches_type(value, annotation)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ("1", int),
        (True, int),
        (True, float),
        (1.0, int),
        (1, bool),
        (b"x", str),
        (None, int),
        (3, str | os.PathLike[str]),
        ("c", Literal["a", "b"]),
        (["x"], list[float]),
        ({"a": "b"}, dict[str, int]),
        ((1,), list[int]),
        ((1,), tuple[int, int]),
        ("ab", Sequence[str]),
        ({"a": 1}, Collection[str]),
        ([1], Sequence[str]),
        ({1}, Collection[str]),
        ({"a": "b"}, Mapping[str, int]),
        (math.nan, float),
        (True, Literal["a"]),
        ("1", Annotated[int, "a note"]),
        (1, Callable[[Any], int]),
    ],
    ids=str,
)
def test_a_value_is_not_of_its_type(value, annotation):
    assert not matches_type(value, annotation)
