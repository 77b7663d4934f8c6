"""Tests of the config schema of an operator."""

import copy
from types import SimpleNamespace
from typing import Any, Literal

import dagster as dg
import pytest

from dagster_dataops.assets.launchpad.config_schema import LazyField, config_schema
from tests.registries import OperatorRegistry


@pytest.fixture
def work(registry: OperatorRegistry) -> Any:
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

    return work


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ({}, ""),
        ({"text": "b"}, ""),
        ({"text": "b", "count": 7, "share": 0.25, "loud": True}, ""),
        ({"share": 1}, ""),
        ({"share": float("inf")}, "share"),
        ({"form": "short"}, ""),
        ({"names": ["a"]}, ""),
        ({"names": ["a", "b"], "text": "c"}, ""),
        ({"maybe": 4}, ""),
        ({"api_key": "hidden", "text": "z"}, ""),
        ({"anything": 3}, ""),
        ({"anything": SimpleNamespace()}, "anything"),
        ({"anything": {"a": 1}, "count": 2}, ""),
    ],
    ids=str,
)
def test_the_schema_shows_the_values_of_its_operator(
    options: dict[str, Any], hidden: str, work: Any
) -> None:
    values = work(**options).__dataops__.options
    shown = config_schema(work(**options))["params"].default_value
    assert shown == {name: values[name] for name in shown}
    assert values.keys() - shown.keys() == {"api_key", hidden} - {""}


def test_values_that_cannot_be_compared_are_supported(work: Any) -> None:
    class Stubborn:
        def __eq__(self, other: object) -> bool:
            msg = "ambiguous"
            raise ValueError(msg)

        __hash__ = None  # type: ignore[assignment]

    params = config_schema(work(anything=Stubborn()))["params"]
    assert "anything" not in params.default_value
    assert "`anything` (Stubborn)" in (params.description or "")


def test_settings_left_empty_have_no_default_to_fill_in(work: Any) -> None:
    fields = config_schema(work(count=2))
    empty = {name for name, field in fields.items() if not field.default_provided}
    assert empty == fields.keys() - {"params"}
    assert empty == {
        "ignore_errors",
        "resume",
        "max_workers",
        "concurrency_mode",
        "limit",
        "timeout",
        "retries",
        "retry_on",
        "backoff",
        "stop_after_failures",
        "drain_seconds",
        "missing",
    }
    assert not any(fields[name].is_required for name in empty)


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
