"""Options of every type in the launchpad: how they are shown, checked and read back."""

import dataclasses
import datetime as dt
import decimal
import enum
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import dagster as dg
import pydantic
import pytest
import yaml
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import Doc

from dagster_dataops import Operator
from dagster_dataops.assets.configs import config_type_of, configured
from dagster_dataops.assets.params import params_class
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.execution.executor import RunFingerprint
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
    """The Config of a launch with the run configuration that the launchpad is filled with."""
    definitions = definitions_of(pipeline_of(node=operator), "texts.jsonl", Path("nowhere"))
    job = definitions.resolve_implicit_global_asset_job_def()
    snapshot = job.get_config_schema_snapshot()
    root = snapshot.get_config_snap(job.run_config_schema.run_config_schema_type.key)
    filled = yaml.safe_load(default_values_yaml_from_type_snap(snapshot, root))
    resolved = dg.validate_run_config(job, as_a_page_has_it(filled))
    return config_type_of(OperatorNode("node", operator, (SOURCE,)))(
        **resolved["ops"]["docs__node"]["config"]
    )


def as_a_page_has_it(value: Any) -> Any:
    """JavaScript knows one kind of number."""
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
    (Literal[1, "b", None, True], st.sampled_from([1, "b", None, True])),
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
        inner.map(lambda t: (Optional[t[0]], st.none() | t[1])),
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
        st.tuples(inner, inner).map(lambda p: (Union[p[0][0], p[1][0]], p[0][1] | p[1][1])),
        st.just((set[str], st.sets(st.text(), max_size=3))),
        st.just((frozenset[Color], st.frozensets(st.sampled_from(Color)))),
    )


TYPED = st.recursive(st.sampled_from(SCALARS), composed, max_leaves=4)
# Of the annotated type, or of quite another: nobody checks options against their annotations.
OPTIONS = TYPED.flatmap(
    lambda t: st.tuples(st.just(t[0]), t[1] | st.none() | st.integers() | st.text())
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(OPTIONS)
def test_whatever_the_types_an_unchanged_launchpad_gives_the_operator_of_the_pipeline(
    option: tuple[Any, Any],
) -> None:
    operator = operator_of(*option)
    config = scaffolded(operator)
    again = configured(operator, config)
    assert again.__dataops__.options["option"] is operator.__dataops__.options["option"]
    same = RunFingerprint.of(operator.__dataops__, "input")
    assert RunFingerprint.of(again.__dataops__, "input") == same
