"""Tests of the component through ``dg``, in a project with the layout of ``create-dagster``."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from tests.assets.helpers import read_jsonl
from tests.warm_python import WarmPython

TYPE = "dagster_dataops.OperatorPipelineComponent"
INSTALLED = "dagster_dataops" in entry_points(group="dagster_dg_cli.registry_modules").names
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("dagster_dg_cli") is None or not INSTALLED,
        reason="needs dagster-dg-cli, and this package installed with its entry point",
    ),
    pytest.mark.timeout(3600),
]

PYPROJECT = """
[project]
name = "my-project"
version = "0.1.0"
requires-python = ">=3.11"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "my_project"
"""
DEFINITIONS = """
from pathlib import Path

import dagster as dg


@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""

# What ``dg`` imports on its first use.
WARM = (
    "dagster_dataops.assets.components.component",
    "dagster_dataops.assets.preload",
    "dagster_dg_cli.cli.api.cli_group",
    "dagster_dg_cli.cli.check",
    "dagster_dg_cli.cli.dev",
    "dagster_dg_core.component",
)
_DG = "from dagster_dg_cli.cli import main; main()"


class Shell:
    """Runs ``dg`` in a project."""

    def __init__(self, folder: Path, python: WarmPython) -> None:
        self.folder = folder
        self.docs = folder / "src/my_project/defs/docs"
        self._python = python
        self._given = {
            "DAGSTER_HOME": str(folder / "home"),
            "COLUMNS": "250",
            "NO_COLOR": "1",
        }

    def dg(self, *arguments: str, code: int = 0) -> str:
        ended = self._python.ended(
            _DG, *arguments, folder=self.folder, path=[self.folder / "src"], **self._given
        )
        told = re.sub(r"\x1b\[[0-9;]*m", "", ended.output + ended.errors)
        assert ended.status == code, told
        return ended.output if code == 0 else told

    def dg_in_a_new_interpreter(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-c", _DG, *arguments],
            cwd=self.folder,
            env=os.environ | self._given,
            check=True,
        )

    @contextmanager
    def changed(self, changes: dict[str, str]) -> Iterator[list[str]]:
        """Change the defs.yaml in the block; yields the file and line of every change."""
        path = self.docs / "defs.yaml"
        before = after = path.read_text()
        for given, instead in changes.items():
            assert given in after
            after = after.replace(given, instead)
        path.write_text(after)
        lines = after.splitlines()
        yield [
            f"{path}:{next(n for n, line in enumerate(lines, 1) if instead in line)}"
            for instead in changes.values()
        ]
        path.write_text(before)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    with WarmPython(*WARM) as python:
        yield made_project(tmp_path_factory, python)


def made_project(tmp_path_factory, python):
    folder = tmp_path_factory.mktemp("component") / "my-project"
    (folder / "src/my_project/defs").mkdir(parents=True)
    (folder / "home").mkdir()
    (folder / "home/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    for module in ("__init__.py", "defs/__init__.py"):
        (folder / "src/my_project" / module).touch()
    (folder / "src/my_project/definitions.py").write_text(DEFINITIONS)
    shell = Shell(folder, python)
    shell.dg_in_a_new_interpreter("scaffold", "defs", TYPE, "docs")
    return shell


def test_dg_lists_the_component(shell):
    components = json.loads(shell.dg("list", "components", "--json"))

    assert TYPE in {component["key"] for component in components["items"]}


def test_the_code_location_shows_the_version_of_this_library():
    import dagster_dataops.assets

    assert dagster_dataops.assets.DagsterLibraryRegistry.get()["dagster-dataops"] == version(
        "dagster-dataops"
    )


def test_a_pipeline_scaffolded_by_dg_is_checked_listed_and_launched(shell):
    shell.dg("check", "defs")
    listed = json.loads(shell.dg("list", "defs", "--json"))
    shell.dg("launch", "--assets", "*")

    assert [asset["asset_key"] for asset in listed["assets"]] == [
        f"docs/{name}" for name in ("counted", "long", "records", "unique")
    ]
    results = shell.folder / "data_pipeline_res/docs/long/long_results.jsonl"
    assert [row["words"] for row in read_jsonl(results)] == [5, 8]


def test_dg_check_yaml_points_at_every_bad_line(shell):
    wrong = {
        "max_workers: 2": "max_worker: 2",
        "name: unique": "name: 3",
        "dedup.Exact": "dedup",
        "- name: long": "- concurrency_mode: parallel",
        '# schedule: "0 2 * * *"': "retry_policy: {max_retrys: 1}",
    }
    with shell.changed(wrong) as places:
        told = shell.dg("check", "yaml", code=1)

    assert [place for place in places if f"{place} - {TYPE} attributes." not in told] == []


WRONG_CHECKS = """
      max_error_rate:
        max_error_rate: 1.5  # wrong
        severity: GRAVE  # wrong
      checks:
        - uniq: [id]  # wrong
        - row_count: {min: few}  # wrong
        - max_dropped: 2  # wrong
        - {unique: id, no_nulls: id}  # wrong
        - no_nulls: []  # wrong
        - json_schema: 3  # wrong
        - required_columns: id
          blocking: perhaps  # wrong
    - name: more
      operator: docs.count_words
      max_error_rate: checked  # wrong
  source_checks:
    - severity: WARN  # wrong
""".strip(" \n")


def test_dg_check_yaml_points_at_every_bad_line_of_checks(shell):
    path = shell.docs / "defs.yaml"
    before = path.read_text()
    path.write_text(before.replace('# schedule: "0 2 * * *"', f"{'':4}{WRONG_CHECKS}"))
    lines = path.read_text().splitlines()
    wrong = [f"{path}:{number} - " for number, line in enumerate(lines, 1) if "# wrong" in line]
    try:
        told = shell.dg("check", "yaml", code=1)
    finally:
        path.write_text(before)

    assert len(wrong) == WRONG_CHECKS.count("# wrong")
    assert [place for place in wrong if f"{place}{TYPE} attributes." not in told] == []


@pytest.mark.parametrize(
    ("given", "instead", "reason"),
    [
        ("docs.count_words", "docs.count_word", "Did you mean docs.count_words?"),
        ("at_least: 3", "at_last: 3", "did you mean 'at_least'?"),
    ],
)
def test_dg_check_defs_points_at_the_bad_line(shell, given, instead, reason):
    with shell.changed({given: instead}) as (place,):
        told = shell.dg("check", "defs", code=1)

    assert f"DefsYamlError: {place}, node '" in told
    assert reason in told
