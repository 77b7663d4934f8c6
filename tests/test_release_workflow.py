"""Tests of the workflow that publishes a release."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.each import each

WORKFLOWS = Path(__file__).parent.parent / ".github" / "workflows"
RELEASE: dict[Any, Any] = yaml.safe_load((WORKFLOWS / "release.yml").read_text())
CI: dict[Any, Any] = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())
JOBS: dict[str, Any] = RELEASE["jobs"]
ON = True  # YAML 1.1 reads the key `on` as a bool


def steps_of(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = JOBS[job]["steps"]
    return steps


def test_a_tag_of_a_version_starts_it_and_nothing_else() -> None:
    assert RELEASE[ON] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+*"]}}


def test_it_builds_checks_installs_and_documents_before_it_publishes() -> None:
    commands = [step.get("run", "") for step in steps_of("build")]
    order = [
        "pip install",
        "CHANGELOG.md",
        "-m build",
        "twine check --strict dist/*",
        "DISTRIBUTIONS=dist .venv/bin/python -m pytest -m '' -n 0 tests/test_distributions.py",
        "sphinx-build -q -W",
    ]
    found = [next(n for n, line in enumerate(commands) if part in line) for part in order]

    assert found == sorted(found)
    assert JOBS["publish"]["needs"] == ["build", "test"]
    assert JOBS["documentation"]["needs"] == "publish"


def test_the_tests_are_those_of_every_change() -> None:
    assert JOBS["test"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in CI[ON]


def test_it_publishes_what_it_has_tested() -> None:
    (kept,) = [step for step in steps_of("build") if "upload-artifact" in step.get("uses", "")]
    taken, published = steps_of("publish")

    assert kept["with"]["name"] == taken["with"]["name"] == "dist"
    assert kept["with"]["path"] == taken["with"]["path"] == "dist/"
    assert published["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert "with" not in published


def test_only_the_jobs_that_publish_get_a_token_and_none_has_a_password() -> None:
    tokens = {name for name, job in JOBS.items() if "id-token" in job["permissions"]}

    assert RELEASE["permissions"] == {}
    assert tokens == {"publish", "documentation"}
    assert all(JOBS[name]["environment"]["name"] for name in tokens)
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text()


@each("name", [path.name for path in sorted(WORKFLOWS.iterdir())])
def test_actions_are_pinned_to_a_commit_with_its_version_beside_it(name: str) -> None:
    text = (WORKFLOWS / name).read_text()
    used = re.findall(r"(?m)uses: +(?!\./)(.+)$", text)

    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one), one


@pytest.mark.parametrize("tag", ["v0.3.0", "v1.0.0rc1"])
def test_the_shape_of_a_tag_is_that_of_our_versions(tag: str) -> None:
    (pattern,) = RELEASE[ON]["push"]["tags"]
    expression = pattern.replace(".", r"\.").replace("*", ".*")

    assert re.fullmatch(expression, tag)
    assert not re.fullmatch(expression, "nightly")
