import copy

import dagster as dg
import pytest

from dagster_dataops.assets.launchpad.lazy_field import LazyField

_MADE = {"a": dg.Field(int, default_value=3), "b": dg.Field(str, is_required=False)}


def _counting() -> tuple[LazyField, list[int]]:
    calls: list[int] = []

    def make() -> dg.Field:
        calls.append(1)
        return dg.Field(_MADE, description="two of them")

    return LazyField(make), calls


def test_a_field_is_made_once_and_only_when_somebody_asks() -> None:
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


def test_a_launch_is_checked_by_it() -> None:
    @dg.op(config_schema=_counting()[0])
    def configured(context: dg.OpExecutionContext) -> int:
        return context.op_config["a"]

    job = dg.GraphDefinition("all", node_defs=[configured]).to_job()
    assert job.execute_in_process().output_for_node("configured") == 3
    given = {"ops": {"configured": {"config": {"a": 4}}}}
    assert job.execute_in_process(run_config=given).output_for_node("configured") == 4
    with pytest.raises(dg.DagsterInvalidConfigError, match="a"):
        job.execute_in_process(run_config={"ops": {"configured": {"config": {"a": "x"}}}})


def test_what_a_field_does_not_know_is_said_as_of_any_object() -> None:
    field, calls = _counting()
    with pytest.raises(AttributeError, match="'LazyField' object has no attribute 'colour'"):
        _ = field.colour
    assert len(calls) == 1
    assert copy.copy(field).default_value == field.default_value
    assert not hasattr(LazyField(dict), "__wrapped__")  # type: ignore[arg-type]
