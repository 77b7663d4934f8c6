"""Tests of the signatures and docstrings of functions that take options."""

import inspect
from typing import Annotated, TypedDict, Unpack

import pytest
from typing_extensions import Doc

import dagster_dataops
from dagster_dataops import PipelineOptions, build_definitions
from dagster_dataops.assets import AssetOptions
from dagster_dataops.assets.planning.option_keywords import option_fields, takes_options


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
        ("build_operator_assets", AssetOptions),
        ("build_operator_asset_specs", AssetOptions),
        ("build_operator_checks", AssetOptions),
        ("build_preview_job", AssetOptions),
        ("dataops_assets", AssetOptions),
        ("plan_pipeline", AssetOptions),
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
