"""Tests that the workflow of the hosted checks agrees with pyproject.toml."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
