"""Tests of options of every type in the launchpad: shown, checked and read back."""

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypedDict, Union

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.assets.launchpad.operator_config import configured
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.errors import OperatorOptionError
from tests.assets.launchpad.options import (
    Client,
    Color,
    Model,
    Sampling,
    given_in_launchpad,
    operator_of,
    scaffolded,
)
from tests.examples import at_most


class Row(TypedDict):
    a: int


SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, st.integers()),
    (float, st.floats()),
    (str, st.text()),
    (bytes, st.binary()),
    (Path, st.text().map(PurePosixPath).map(Path)),
    (dt.date, st.dates()),
    (dt.datetime, st.datetimes()),
    (dt.timedelta, st.timedeltas()),
    (decimal.Decimal, st.decimals()),
    (uuid.UUID, st.uuids()),
    (re.Pattern, st.just(re.compile("a+", re.IGNORECASE))),
    (Color, st.sampled_from(Color)),
    (Literal["a", "mro", ""], st.sampled_from(["a", "mro", ""])),
    (Literal[1, "b", None, True], st.sampled_from([1, "b", None, True])),  # noqa: PYI061
    (Sampling, st.builds(Sampling)),
    (Model, st.builds(Model)),
    (Client, st.builds(Client)),
    (Callable[[str], str], st.just(str.upper)),
    (Row, st.just({"a": 1})),
    (type[int], st.just(int)),
    (complex, st.complex_numbers()),
    (Any, st.none() | st.text() | st.integers() | st.lists(st.text())),
    ("Unknown", st.text()),
    (object, st.builds(object)),
]
Typed = tuple[Any, st.SearchStrategy[Any]]


def composed(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda t: (Union[t[0], None], st.none() | t[1])),  # noqa: UP007 - of any annotation
        inner.map(lambda t: (list[t[0]], st.lists(t[1], max_size=3))),
        inner.map(lambda t: (Sequence[t[0]], st.lists(t[1], max_size=3))),
        inner.map(lambda t: (Iterable[t[0]], st.lists(t[1], max_size=3))),
        inner.map(lambda t: (tuple[t[0], ...], st.lists(t[1], max_size=3).map(tuple))),
        inner.map(lambda t: (dict[str, t[0]], st.dictionaries(st.text(), t[1], max_size=2))),
        inner.map(lambda t: (Mapping[int, t[0]], st.dictionaries(st.integers(), t[1], max_size=2))),
        inner.map(lambda t: (Annotated[t[0], "A text."], t[1])),
        st.tuples(inner, inner).map(
            lambda p: (tuple[p[0][0], p[1][0]], st.tuples(p[0][1], p[1][1]))
        ),
        st.tuples(inner, inner).map(
            lambda p: (Union[p[0][0], p[1][0]], p[0][1] | p[1][1])  # noqa: UP007
        ),
        st.just((set[str], st.sets(st.text(), max_size=3))),
        st.just((frozenset[Color], st.frozensets(st.sampled_from(Color)))),
    )


TYPED = st.recursive(st.sampled_from(SCALARS), composed, max_leaves=4)
# A value of the annotated type, or of another one: options are not checked here.
OPTIONS = TYPED.flatmap(
    lambda t: st.tuples(st.just(t[0]), t[1] | st.none() | st.integers() | st.text())
)


@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(OPTIONS)
def test_an_unchanged_launchpad_gives_the_operator_of_the_pipeline_for_all_types(
    option: tuple[Any, Any],
) -> None:
    operator = operator_of(*option)
    config = scaffolded(operator)
    again = configured(operator, config)
    assert again.__dataops__.options["option"] is operator.__dataops__.options["option"]
    same = RunFingerprint.of(operator.__dataops__, "input")
    assert RunFingerprint.of(again.__dataops__, "input") == same


@pytest.mark.parametrize(
    ("annotation", "value", "text", "said"),
    [
        (dt.date, dt.date(2026, 1, 2), "yesterday", "cannot be 'yesterday': .* Allowed: a date"),
        (Annotated[int, pydantic.Field(ge=1, le=9)], 1, 0, "cannot be 0: .* at least 1, at most 9"),
        (int | list[str], 1, {"a": 1}, "cannot be {'a': 1}: .* Allowed: integer or a"),
        (tuple[int, int], (1, 2), [1], r"cannot be \[1\]: .* exactly 2 items"),
        (Literal[1, 2], 1, 3, "cannot be 3: .* one of 1, 2"),
        (
            Model,
            Model(),
            {"name": "big", "size": 0},
            "cannot be .*: size: .* greater than or equal to 1",
        ),
        (int, 1, None, "cannot be None"),
        (frozenset[Color], frozenset(), ["GREEN"], "cannot be .* must be one of RED, BLUE"),
    ],
    ids=str,
)
def test_an_invalid_option_is_refused_with_name_value_and_allowed_values(
    annotation: Any, value: Any, text: Any, said: str
) -> None:
    with pytest.raises(OperatorOptionError, match=f"text.node: option 'option' {said}"):
        given_in_launchpad(operator_of(annotation, value), text)
