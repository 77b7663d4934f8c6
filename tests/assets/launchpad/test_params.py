"""Tests of options of every type in the launchpad: shown, checked and read back."""

import dataclasses
import datetime as dt
import decimal
import enum
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypedDict, Union

import dagster as dg
import pydantic
import pytest
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.yaml_utils import load_run_config_yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import Doc

from dagster_dataops import Operator
from dagster_dataops.assets.launchpad.operator_config import config_type_of, configured
from dagster_dataops.assets.launchpad.params import params_class
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.graph.graph import SOURCE, OperatorNode
from dagster_dataops.operators.registry import OperatorRegistry
from tests.assets.helpers import definitions_of, pipeline_of


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


class Client:
    pass


class Row(TypedDict):
    a: int


@dataclasses.dataclass
class Sampling:
    temperature: float = 0.7
    stop: list[str] | None = None


class Model(pydantic.BaseModel):
    name: str = "small"
    size: Annotated[int, pydantic.Field(ge=1, description="Of it, in billions.")] = 7


def operator_of(annotation: Any, value: Any) -> Operator:
    def node(record: dict, option: Any = value) -> dict:
        return record

    node.__annotations__["option"] = annotation
    made: Operator = OperatorRegistry(lambda *_: None)("data.text")(node)()
    return made


def scaffolded(operator: Operator) -> Any:
    """Return the Config of a launch with the run configuration that the launchpad proposes."""
    definitions = definitions_of(pipeline_of(node=operator), "texts.jsonl", Path("nowhere"))
    job = definitions.resolve_implicit_global_asset_job_def()
    snapshot = job.get_config_schema_snapshot()
    root = snapshot.get_config_snap(job.run_config_schema.run_config_schema_type.key)
    filled = load_run_config_yaml(default_values_yaml_from_type_snap(snapshot, root))
    resolved = dg.validate_run_config(job, as_a_page_has_it(filled))
    return config_type_of(OperatorNode("node", operator, (SOURCE,)))(
        **resolved["ops"]["docs__node"]["config"]
    )


def as_a_page_has_it(value: Any) -> Any:
    """Return numbers as JavaScript has them: it has one kind of number."""
    if isinstance(value, dict):
        return {key: as_a_page_has_it(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_a_page_has_it(item) for item in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def shown(operator: Operator) -> Any:
    """The schema's field of the option."""
    params = params_class(operator, "Node")
    assert params is not None
    return params.to_fields_dict()["option"]


def given_in_launchpad(operator: Operator, value: Any) -> Operator:
    kind = config_type_of(OperatorNode("node", operator, (SOURCE,)))
    return configured(operator, kind(params={"option": value}))


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


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
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


@pytest.mark.parametrize(
    ("annotation", "value", "kind"),
    [
        (Literal["a", "b"], "a", "Literal['a', 'b']"),
        (Literal["a", "b"] | None, None, "Literal['a', 'b']"),
        (Color, Color.RED, "Literal['RED', 'BLUE']"),
        (list[Color], [Color.RED], "Literal['RED', 'BLUE']"),
    ],
    ids=str,
)
def test_choices_are_checked_at_launch(annotation: Any, value: Any, kind: str) -> None:
    field = shown(operator_of(annotation, value))
    inner = getattr(field.config_type, "inner_type", field.config_type)
    inner = getattr(inner, "inner_type", inner)
    assert inner.given_name == kind


def test_descriptions_come_from_docstring_annotation_and_type() -> None:
    def node(
        record: dict,
        size: tuple[int, int] = (1, 2),
        day: dt.date = dt.date(2026, 1, 2),
        tone: Annotated[str, Doc("How it sounds.")] = "warm",
        model: Model = Model(),  # noqa: B008
    ) -> dict:
        return record

    node.__doc__ = "Do.\n\nArgs:\n    size: Width and height."

    params = params_class(OperatorRegistry(lambda *_: None)("data.text")(node)(), "Node")
    assert params is not None
    fields = params.to_fields_dict()
    found = {name: field.description for name, field in fields.items()}
    assert found == {
        "size": "Width and height.\n\nExactly 2 items.",
        "day": "A date such as 2026-01-31.",
        "tone": "How it sounds.",
        "model": None,
    }
    size = fields["model"].config_type.fields["size"]  # type: ignore[attr-defined]
    assert size.description == "Of it, in billions.\n\nAt least 1."


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

    params = params_class(OperatorRegistry(lambda *_: None)("data.text")(node)(), "Node")
    assert params is not None
    assert list(params.to_fields_dict()) == ["plain"]
    said = params.__doc__ or ""
    assert said.startswith(
        "Options of data.text.node. Not shown, with their values of the pipeline: "
    )
    for name in ("make", "api_key` (secret)", "client", "words` (list)", "size` (int)"):
        assert f"`{name}" in said
    assert "sk-123" not in said


def test_nothing_that_a_launchpad_drops_of_a_mapping_changes_an_option() -> None:
    operator = operator_of(dict[str, Any], {"a": None, "b": {}, "c": 1})
    again = configured(operator, scaffolded(operator))
    assert again.__dataops__.options == {"option": {"a": None, "b": {}, "c": 1}}
