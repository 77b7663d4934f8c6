"""Tests that the config schema of a node equals that of its Config class."""

import copy
from types import SimpleNamespace
from typing import Any, Literal

import dagster as dg
import pytest

from dagster_dataops import pipeline
from dagster_dataops.assets.launchpad.config_schema import LazyField, config_of, config_schema
from dagster_dataops.assets.launchpad.operator_config import SettingsConfig, config_type_of
from dagster_dataops.graph.operator_node import OperatorNode
from dagster_dataops.operators.registry import OperatorRegistry


def nodes(registry: OperatorRegistry, *uses: dict[str, Any]) -> list[OperatorNode]:
    @registry("data.text", _concurrency_mode="thread")
    def work(
        record: dict,
        text: str = "a",
        count: int = 1,
        share: float = 0.5,
        loud: bool = False,
        form: Literal["long", "short"] = "long",
        names: list | None = None,
        maybe: int | None = None,
        api_key: str = "",
        anything: Any = None,
    ) -> dict:
        """Do work."""
        return record

    with pipeline("docs") as ppl:
        for number, options in enumerate(uses):
            ppl.add(f"node_{number}", work(**options))
    return list(ppl.graph.nodes.values())


def plain(fields: Any) -> Any:
    """Return fields in a form that can be compared: types, defaults, descriptions."""
    found = {}
    for name, field in fields.items():
        inner = getattr(field.config_type, "fields", None)
        default = field.default_value if field.default_provided and inner is None else None
        found[name] = (
            plain(inner) if inner else field.config_type.key,
            type(default),
            default,
            field.description,
            field.is_required,
        )
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text": "b"},
        {"text": "b", "count": 7, "share": 0.25, "loud": True},
        {"share": 1},
        {"share": float("inf")},
        {"form": "short"},
        {"names": ["a"]},
        {"names": ["a", "b"], "text": "c"},
        {"maybe": 4},
        {"api_key": "hidden", "text": "z"},
        {"anything": 3},
        {"anything": SimpleNamespace()},
        {"anything": {"a": 1}, "count": 2},
        {"_max_workers": 3},
        {"_ignore_errors": False},
    ],
    ids=str,
)
def test_the_schema_of_a_later_use_equals_that_of_its_config_class(
    options: dict[str, Any], registry: OperatorRegistry
) -> None:
    found = nodes(registry, {}, {"text": "x", "share": 0.1, "form": "short"}, options)
    for node in found:
        assert plain(config_schema(node)) == plain(config_type_of(node).to_fields_dict())


def test_unchanged_parts_are_shared(registry: OperatorRegistry) -> None:
    one, other, third = nodes(registry, {}, {}, {"count": 3})
    assert config_schema(one) is config_schema(other)
    assert config_schema(one)["timeout"] is config_schema(third)["timeout"]
    assert config_schema(third)["params"].default_value["count"] == 3
    assert config_schema(one)["params"].default_value["count"] == 1


def test_values_that_cannot_be_compared_are_supported(registry: OperatorRegistry) -> None:
    class Stubborn:
        def __eq__(self, other: object) -> bool:
            msg = "ambiguous"
            raise ValueError(msg)

        __hash__ = None  # type: ignore[assignment]

    one, other = nodes(registry, {"anything": Stubborn()}, {"anything": Stubborn()})
    assert plain(config_schema(one)) == plain(config_schema(other))


def test_a_launch_becomes_the_config_class_of_its_node(registry: OperatorRegistry) -> None:
    (node,) = nodes(registry, {"count": 2})
    config = config_of(node, config_schema(node), {"params": {"count": 5}, "max_workers": 3})
    assert config.max_workers == 3
    assert type(config) is not SettingsConfig
    (params,) = [value for name, value in config if name == "params"]
    assert 5 in dict(params).values()
    assert config.resume == "auto"


@pytest.mark.parametrize("names", [[], ["TimeoutError"], None])
def test_a_launch_may_name_exceptions_or_none(
    registry: OperatorRegistry, names: list[str] | None
) -> None:
    (node,) = nodes(registry, {"count": 2})
    assert config_of(node, config_schema(node), {"retry_on": names}).retry_on == names


def test_a_launch_without_settings_keeps_the_failure_handling_of_the_operator(
    registry: OperatorRegistry,
) -> None:
    stops, goes_on = nodes(registry, {"_ignore_errors": False}, {"count": 2})
    assert not config_of(stops, config_schema(stops), {}).ignore_errors
    assert config_of(goes_on, config_schema(goes_on), {}).ignore_errors


def test_settings_left_empty_have_no_default_to_fill_in(registry: OperatorRegistry) -> None:
    (node,) = nodes(registry, {"count": 2})
    fields = config_schema(node)
    empty = {name for name, field in fields.items() if not field.default_provided}
    assert empty == {
        "max_workers",
        "concurrency_mode",
        "limit",
        "timeout",
        "retries",
        "retry_on",
        "backoff",
        "stop_after_failures",
        "drain_seconds",
        "part_records",
    }
    assert not any(fields[name].is_required for name in empty)


def test_a_launch_without_changed_options_creates_no_class(
    registry: OperatorRegistry,
) -> None:
    (node,) = nodes(registry, {"count": 2})
    params = config_schema(node)["params"].default_value
    config = config_of(node, config_schema(node), {"params": params, "max_workers": 3})
    assert type(config) is SettingsConfig
    assert config.max_workers == 3


_MADE = {"a": dg.Field(int, default_value=3), "b": dg.Field(str, is_required=False)}


def _counting() -> tuple[LazyField, list[int]]:
    calls: list[int] = []

    def make() -> dg.Field:
        calls.append(1)
        return dg.Field(_MADE, description="two of them")

    return LazyField(make), calls


def test_a_field_is_created_once_on_first_access() -> None:
    field, calls = _counting()

    @dg.op(config_schema=field)
    def configured(context: dg.OpExecutionContext) -> int:
        return context.op_config["a"]

    assert not calls
    made = dg.Field(_MADE, description="two of them")
    assert field.config_type is made.config_type
    assert (field.default_value, field.is_required) == (made.default_value, made.is_required)
    assert (field.description, field.is_secret) == (made.description, made.is_secret)
    assert repr(field) == repr(made)
    assert len(calls) == 1


def test_a_launch_is_checked_by_the_lazy_field() -> None:
    @dg.op(config_schema=_counting()[0])
    def configured(context: dg.OpExecutionContext) -> int:
        return context.op_config["a"]

    job = dg.GraphDefinition("all", node_defs=[configured]).to_job()
    assert job.execute_in_process().output_for_node("configured") == 3
    given = {"ops": {"configured": {"config": {"a": 4}}}}
    assert job.execute_in_process(run_config=given).output_for_node("configured") == 4
    with pytest.raises(dg.DagsterInvalidConfigError, match="a"):
        job.execute_in_process(run_config={"ops": {"configured": {"config": {"a": "x"}}}})


def test_an_unknown_attribute_of_a_field_is_an_attribute_error() -> None:
    field, calls = _counting()
    with pytest.raises(AttributeError, match="'LazyField' object has no attribute 'colour'"):
        _ = field.colour
    assert len(calls) == 1
    assert copy.copy(field).default_value == field.default_value
    assert not hasattr(LazyField(dict), "__wrapped__")  # type: ignore[arg-type]
