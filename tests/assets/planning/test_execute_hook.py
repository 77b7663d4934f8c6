"""Tests of execute of a translator: which methods are refused when definitions load."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsTranslator, Pipeline, build_definitions
from dagster_dataops.assets.planning.execute_hook import execute_hook
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import pipeline_of
from tests.registries import OperatorRegistry


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def kept(record: dict) -> dict:
        return record

    return pipeline_of(kept=kept())


def translator_with(execute: Any) -> DataOpsTranslator:
    return type("Mine", (DataOpsTranslator,), {"execute": execute})()


async def waits(self, context, dataops): ...


async def yields_later(self, context, dataops):
    yield


@pytest.mark.parametrize(
    ("execute", "named"),
    [
        (lambda self: None, "takes ()"),
        (lambda self, context: None, "takes (context)"),
        (lambda self, context, *, dataops: None, "takes (context, *, dataops)"),
        (lambda self, context, dataops, config: None, "takes (context, dataops, config)"),
        (lambda self, context, dataops, dataops_2, /: None, "dataops_2, /)"),
        (waits, "is asynchronous"),
        (yields_later, "is asynchronous"),
        ("run", "is 'run', not a method"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_method_that_cannot_run_a_step_is_refused_when_definitions_load(
    execute: Any, named: str, ppl: Pipeline, records: Callable[[int], Path]
) -> None:
    for layout in ("steps", "single_step"):
        with pytest.raises(PipelineDefinitionError) as caught:
            build_definitions(
                ppl,
                source=records(1),
                layout=layout,
                dagster_dataops_translator=translator_with(execute),
            )
        assert named in str(caught.value)
        assert "'docs': execute of Mine" in str(caught.value)
        assert "def execute(self, context, dataops)" in str(caught.value)


@pytest.mark.parametrize(
    ("execute", "keys"),
    [
        (lambda self, context, dataops: None, ()),
        (lambda self, step, resource: None, ()),
        (lambda self, *args: None, ()),
        (lambda self, *args, **more: None, ()),
        (lambda self, context, dataops, slack: None, ("slack",)),
        (lambda self, context, dataops, *, slack, level=1: None, ("slack",)),
        (functools.wraps(DataOpsTranslator.execute)(lambda self, *args: None), ()),
    ],
)
def test_arguments_after_the_resource_are_keys_of_resources(
    execute: Any, keys: tuple[str, ...]
) -> None:
    hook = execute_hook({"dagster_dataops_translator": translator_with(execute)}, "docs")
    assert hook is not None
    assert hook.resource_keys == keys


@pytest.mark.parametrize("options", [{}, {"dagster_dataops_translator": DataOpsTranslator()}])
def test_the_default_method_is_no_hook(options: Any) -> None:
    assert execute_hook(options, "docs") is None


def test_a_resource_that_is_missing_is_named_when_definitions_load(
    ppl: Pipeline, records: Callable[[int], Path]
) -> None:
    mine = translator_with(lambda self, context, dataops, slack: None)
    definitions = build_definitions(ppl, source=records(1), dagster_dataops_translator=mine)
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="slack"):
        definitions.get_repository_def()
