"""Python types in the launchpad."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pytest

from dagster_dataops import Operator
from dagster_dataops.assets.launchpad.option_types import option_type
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.ranges import Fraction
from tests.assets.launchpad.options import (
    Color,
    Model,
    Sampling,
    fields_of,
    given_in_launchpad,
    operator_of,
    params_of,
)


def shown(operator: Operator) -> Any:
    """The schema's field of the option."""
    return fields_of(params_of(operator))["option"]


@pytest.mark.parametrize(
    ("annotation", "value", "text", "meant"),
    [
        (Path, Path("a"), "b", Path("b")),
        (dt.date, dt.date(2026, 1, 2), "2026-01-03", dt.date(2026, 1, 3)),
        (dt.timedelta, dt.timedelta(1), "PT30S", dt.timedelta(seconds=30)),
        (bytes, b"a", "b", b"b"),
        (tuple[int, str], (1, "a"), [2, "b"], (2, "b")),
        (set[str], {"a"}, ["b", "b"], {"b"}),
        (frozenset[Color] | None, None, ["RED"], frozenset({Color.RED})),
        (Iterable[str], ["a"], ["b"], ["b"]),
        (Color, Color.RED, "BLUE", Color.BLUE),
        (Color | None, None, "BLUE", Color.BLUE),
        (Literal["a", "b"] | None, None, "b", "b"),
        (int | str, 1, "b", "b"),
        (dict[int, str], {1: "a"}, {"2": "b"}, {2: "b"}),
        (Sampling, Sampling(), {"temperature": 0.5, "stop": ["."]}, Sampling(0.5, ["."])),
        (Sampling | None, None, {"temperature": 0.5}, Sampling(0.5)),
        (Model, Model(), {"name": "big", "size": 9}, Model(name="big", size=9)),
        (float, 1.0, 2, 2.0),
        (Fraction | None, None, 0.5, 0.5),
        (Any, True, 1, 1),
    ],
    ids=str,
)
def test_launchpad_values_are_converted_to_option_values(
    annotation: Any, value: Any, text: Any, meant: Any
) -> None:
    made = given_in_launchpad(operator_of(annotation, value), text)
    assert made.__dataops__.options["option"] == meant
    assert type(made.__dataops__.options["option"]) is type(meant)


@pytest.mark.parametrize(
    ("annotation", "value", "kind"),
    [
        (Literal["a", "b"], "a", "Literal['a', 'b']"),
        (Literal["a", "b"] | None, None, "Literal['a', 'b']"),
        (Color, Color.RED, "Literal['RED', 'BLUE']"),
        (list[Color], [Color.RED], "Literal['RED', 'BLUE']"),
        (list[Literal["mro", ""]], ["mro"], "Literal['mro', '']"),
    ],
    ids=str,
)
def test_choices_are_checked_at_launch(annotation: Any, value: Any, kind: str) -> None:
    field = shown(operator_of(annotation, value))
    inner = getattr(field.config_type, "inner_type", field.config_type)
    inner = getattr(inner, "inner_type", inner)
    assert inner.given_name == kind


def test_a_range_is_in_the_schema_and_in_the_description() -> None:
    number = {"maximum": 1, "minimum": 0, "type": "number"}
    kind = option_type(Fraction | None)

    assert kind is not None
    assert number in kind.schema["anyOf"]
    assert "At least 0, at most 1." in shown(operator_of(Fraction, 0.5)).description
    with pytest.raises(OperatorOptionError, match="less than or equal to 1"):
        given_in_launchpad(operator_of(Fraction, 0.5), 2)
