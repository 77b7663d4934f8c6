"""Options in the launchpad: types, values shown and changed."""

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

from dagster_dataops import Operator
from dagster_dataops.assets.launchpad.config_schema import config_field
from dagster_dataops.assets.launchpad.operator_config import configured
from dagster_dataops.assets.launchpad.option_types import option_type
from dagster_dataops.assets.launchpad.shown_values import in_order_of
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.ranges import Fraction
from tests.assets.launchpad.options import (
    Client,
    Color,
    Model,
    Sampling,
    fields_of,
    given_in_launchpad,
    operator_of,
    params_of,
    scaffolded,
)
from tests.examples import at_most
from tests.registries import OperatorRegistry


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


@pytest.mark.slow
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


def test_left_out_options_are_named() -> None:
    def node(
        record: dict,
        make: Callable[[str], str] = str.upper,
        api_key: str = "sk-123",
        client: Client | None = None,
        words: list[str] = ["word"] * 1000,
        size: int = 2**60,
        plain: str = "",
    ) -> dict:
        return record

    field = config_field(OperatorRegistry(lambda *_: None)("data.text")(node)())
    assert field.description == "data.text.node, and how it is run."
    params = fields_of(field)["params"]
    assert list(fields_of(params)) == ["plain"]
    said = params.description or ""
    assert said.startswith(
        "Options of the operator. Not shown, with their values of the pipeline: "
    )
    for name in ("make", "api_key` (secret)", "client", "words` (list)", "size` (int)"):
        assert f"`{name}" in said
    assert "sk-123" not in said


def test_nothing_that_a_launchpad_drops_of_a_mapping_changes_an_option() -> None:
    operator = operator_of(dict[str, Any], {"a": None, "b": {}, "c": 1})
    again = configured(operator, scaffolded(operator))
    assert again.__dataops__.options == {"option": {"a": None, "b": {}, "c": 1}}


def test_the_order_of_entries_is_that_of_the_pipeline_whatever_dagster_makes_of_it() -> None:
    shown = {"b": 1, "a": {"z": 1, "y": 2}, "c": [{"f": 1, "e": 2}]}
    stored = {"a": {"x": 5, "y": 3, "z": 1}, "b": 1, "c": [{"e": 2, "f": 1}, {"h": 1, "g": 2}]}
    for launched in (stored, dict(reversed(stored.items()))):
        made = in_order_of(launched, shown)
        assert made == launched
        assert list(made) == ["b", "a", "c"]
        assert list(made["a"]) == ["z", "y", "x"]
        assert [list(one) for one in made["c"]] == [["f", "e"], ["g", "h"]]
    assert in_order_of([1], {"a": 1}) == [1]


def test_a_launch_proposes_the_options_of_the_pipeline_and_nothing_else() -> None:
    assert scaffolded(operator_of(int, 3)) == {"params": {"option": 3}}
