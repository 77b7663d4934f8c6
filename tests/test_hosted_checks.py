"""Tests that the workflow of the hosted checks agrees with pyproject.toml."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from tests.documented_names import public_names

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = (ROOT / "docs/concepts/versions.md").read_text()
README = (ROOT / "README.md").read_text()
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())


def test_the_oldest_dagster_of_the_workflow_is_the_oldest_supported_one() -> None:
    (lowest,) = [
        found[1]
        for needed in PROJECT["dependencies"]
        if (found := re.match(r"dagster>=([\d.]+)", needed))
    ]

    (step,) = [step for step in WORKFLOW["jobs"]["run"]["steps"] if "oldest" in step.get("if", "")]

    assert set(re.findall(r"dagster[\w-]*==(\S+)", step["run"])) == {lowest}


def test_the_oldest_python_of_the_workflow_is_the_oldest_supported_one() -> None:
    pythons = WORKFLOW["jobs"]["run"]["strategy"]["matrix"]["python"]

    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]


def supported(part: str) -> str:
    """Return the second cell of a row of the table of supported versions."""
    table = VERSIONS.partition("## What is stable")[0]
    (cell,) = re.findall(rf"(?m)^\| {part} \| (.+?) \|", table)
    return cell


def test_the_documented_pythons_are_those_of_the_package_and_of_the_workflow() -> None:
    pythons = WORKFLOW["jobs"]["run"]["strategy"]["matrix"]["python"]
    found = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one]

    assert supported("Python").split(", ") == found == pythons
    assert f"Python {pythons[0]} to {pythons[-1]}" in README


def test_the_documented_dagster_is_that_of_the_package() -> None:
    (needed,) = [one for one in PROJECT["dependencies"] if re.match(r"dagster\b", one)]
    (ui,) = PROJECT["optional-dependencies"]["webserver"]
    lowest, below = re.fullmatch(r"dagster>=([\d.]+),<(\d+)", needed).groups()  # type: ignore[union-attr]

    assert supported("Dagster") == f"{lowest} and newer, below {below}"
    assert ui.replace("dagster-webserver", "dagster") == needed
    assert WORKFLOW["jobs"]["run"]["strategy"]["matrix"]["dagster"] == ["oldest", "newest"]


def test_the_documented_system_is_that_of_the_package() -> None:
    found = [one for one in PROJECT["classifiers"] if one.startswith("Operating System ::")]

    assert [one.rpartition(" ")[2] for one in found] == [supported("operating system")]
    assert f"You need {supported('operating system')}, Python" in README


def test_the_stable_modules_are_those_that_the_package_shows() -> None:
    (cell,) = re.findall(
        r"(?m)^\| names \| those of `dagster_dataops`, and of its modules (.+?):", VERSIONS
    )
    listed = re.findall(r"`(\w+)`", cell)

    names = public_names("dagster_dataops")
    shown = {name for name in names if find_spec(f"dagster_dataops.{name}") is not None}
    assert {*listed, "data"} == shown
