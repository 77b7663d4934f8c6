"""Tests of the signatures and docstrings of functions that take options."""

import inspect
import re
from typing import Annotated, TypedDict, Unpack

import pytest
from typing_extensions import Doc

import dagster_dataops
from dagster_dataops import LLMResource, PipelineOptions, assets, build_definitions, checks, data
from dagster_dataops.assets.planning.option_keywords import option_fields, takes_options
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from tests.assets.helpers import pipeline_of


class Options(TypedDict, total=False):
    colour: Annotated[str, Doc("Colour of the house.")]
    height: Annotated[int | None, Doc("Height in metres.")]


@takes_options(Options)
def build(place: str, **options: Unpack[Options]) -> object:
    """Build a house.

    Args:
        place: Where it stands.
        **options: See `Options`.

    Raises:
        ValueError: Never.
    """
    return place, options


def test_options_are_passed_on() -> None:
    assert build("here", colour="red") == ("here", {"colour": "red"})


def test_the_signature_names_every_option() -> None:
    assert str(inspect.signature(build)) == (
        "(place: str, *, colour: str = ..., height: int | None = ...) -> object"
    )


def test_the_docstring_describes_every_option() -> None:
    assert inspect.getdoc(build) == (
        "Build a house.\n\nArgs:\n    place: Where it stands.\n"
        "    colour: Colour of the house.\n    height: Height in metres.\n\n"
        "Raises:\n    ValueError: Never."
    )


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match=r"got an unexpected .*'color'; did you mean 'colour'"):
        build("here", color="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Options: place, colour, height"):
        build("here", xyz=1)  # type: ignore[call-arg]


def test_an_option_without_a_description_is_refused() -> None:
    class Bare(TypedDict, total=False):
        colour: str

    with pytest.raises(TypeError, match="option 'colour' of Bare needs Annotated"):
        option_fields(Bare)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("build_definitions", PipelineOptions),
        ("build_operator_assets", assets.AssetOptions),
        ("build_operator_asset_specs", assets.AssetOptions),
        ("build_operator_checks", assets.AssetOptions),
        ("build_preview_job", assets.AssetOptions),
        ("dataops_assets", assets.AssetOptions),
        ("plan_pipeline", assets.AssetOptions),
    ],
)
def test_every_builder_takes_and_describes_the_options(name: str, options: type) -> None:
    package = dagster_dataops if name in dagster_dataops.__all__ else dagster_dataops.assets
    function = getattr(package, name)
    shown = inspect.signature(function).parameters
    for option, field in option_fields(options).items():
        assert shown[option].annotation == field.annotation
        assert f"    {option}: " in (inspect.getdoc(function) or "")


def test_the_options_of_build_definitions_are_listed_once() -> None:
    own = set(inspect.signature(build_definitions).parameters) - {"ppl", "source"}
    assert own == set(option_fields(PipelineOptions))


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("resource", "results", "resource is 'results'; it must be DataOpsResource or None"),
        ("layout", "one_step", "layout is 'one_step'; it must be 'steps' or 'single_step'"),
        ("max_error_rate", "few", "must be float or ErrorRateCheck or None or Mapping"),
        ("executor", 3, "must be 'in_process' or 'multiprocess' or ExecutorDefinition"),
        ("clients", {"judge": 3}, "clients.judge is 3; it must be ConfigurableResource"),
        ("clients", {3: None}, "clients is {3: None}; it must be a mapping whose keys are texts"),
        (
            "clients",
            {"root": LLMResource()},
            "it must be a mapping whose keys are names of letters",
        ),
        ("clients", {"folder": LLMResource()}, "and no attributes of DataOpsResource"),
        ("clients", {"a b": LLMResource()}, "it must be a mapping whose keys are names of letters"),
        ("automation_condition", {"clean": 3}, "automation_condition.clean is 3; it must be"),
        ("max_error_rate", {"clean": "few"}, "max_error_rate.clean is 'few'; it must be float"),
        ("max_error_rate", {"clean": True}, "max_error_rate.clean is True; it must be float"),
        ("op_tags", {3: {}}, "op_tags is {3: {}}; it must be a mapping whose keys are texts"),
        ("columns", {3: "The text."}, "it must be a mapping whose keys are texts"),
        ("pools", {"clean": 3}, "pools.clean is 3; it must be the name of a pool"),
        ("pools", {"clean": "a b"}, "pools.clean is 'a b'; it must be the name of a pool"),
        ("pools", {"clean": None}, "pools.clean is None; it must be the name of a pool"),
        ("checks", {"clean": 3}, "checks.clean is 3; it must be a list of checks"),
        ("checks", {"clean": [None]}, "checks.clean is [None]; it must be a list of checks"),
        ("checks", {"clean": "all"}, "checks.clean is 'all'; it must be a list of checks"),
        ("checks", {"source": {}}, "checks.source is {}; it must be a list of checks"),
    ],
)
def test_a_value_of_another_type_is_refused(option: str, value: object, wanted: str) -> None:
    ppl = pipeline_of(clean=data.text.Normalize())
    with pytest.raises(ConfigurationError, match=re.escape(wanted)):
        build_definitions(ppl, source="docs.jsonl", **{option: value})  # type: ignore[arg-type]


def test_options_of_asset_specs_lead_to_the_translator() -> None:
    ppl = pipeline_of(clean=data.text.Normalize())
    said = "'owners'; a DataOpsTranslator, given as .* each asset, and job_owners for the jobs"
    with pytest.raises(TypeError, match=said):
        build_definitions(ppl, source="docs.jsonl", owners=["me"])  # type: ignore[call-arg]


def test_an_operator_in_place_of_a_pipeline_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ppl is data.text.Normalize.*must be a pipeline"):
        build_definitions(data.text.Normalize(), source="docs.jsonl")


def test_an_option_that_names_an_unknown_node_is_named_itself() -> None:
    ppl = pipeline_of(clean=data.text.Normalize())
    with pytest.raises(PipelineDefinitionError, match="unpartitioned names 'clear'.*are clean"):
        build_definitions(ppl, source="docs.jsonl", unpartitioned=["clear"])


def test_a_check_that_is_in_no_list_is_refused() -> None:
    ppl = pipeline_of(clean=data.text.Normalize())
    with pytest.raises(PipelineDefinitionError, match="checks of 'clean' must be a list"):
        build_definitions(ppl, source="docs.jsonl", checks={"clean": checks.row_count(min=1)})  # type: ignore[dict-item]
