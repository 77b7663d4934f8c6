"""Modes that another package registers: in the launchpad, in YAML, in the metadata."""

import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops import data_register, register_workplace
from dagster_dataops.assets.launchpad.config_schema import mode_type
from dagster_dataops.assets.runtime.core_sharing import fair_settings
from dagster_dataops.errors import DefsYamlError
from dagster_dataops.operators.options import concurrency_modes
from tests.assets.component_project import WARNED_OF
from tests.assets.helpers import (
    definitions_of,
    execute,
    pipeline_of,
    result_of,
    spec_of,
    write_jsonl,
)
from tests.nodes import ExecutionSettings
from tests.test_workplaces import InTheCaller

pytestmark = WARNED_OF


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Register a workplace for one test."""
    modes = dict(concurrency_modes._MODES)
    register_workplace("caller", InTheCaller(), default_workers=1)
    yield
    concurrency_modes._MODES.clear()
    concurrency_modes._MODES.update(modes)


@data_register("data.registered_modes", _concurrency_mode="single")
def doubled(record):
    return {"n": 2 * record["n"]}


def _definitions(tmp_path: Path, **settings: str) -> dg.Definitions:
    source = write_jsonl(tmp_path / "texts.jsonl", [{"n": 1}, {"n": 2}])
    return definitions_of(pipeline_of(node=doubled(**settings)), source, tmp_path / "root")


def _chosen(mode: str) -> dict[str, object]:
    return {"ops": {"docs__node": {"config": {"concurrency_mode": mode}}}}


def test_the_launchpad_offers_it_and_runs_it(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    run = InTheCaller.run

    def noted(self, attempt, work, sink):
        runs.append(attempt.name)
        run(self, attempt, work, sink)

    monkeypatch.setattr(InTheCaller, "run", noted)
    execute(_definitions(tmp_path), instance, _chosen("caller"))
    assert runs == ["registered_modes.doubled"]
    assert result_of(tmp_path / "root", "docs", "node") == [{"n": 2}, {"n": 4}]


def test_the_launchpad_refuses_a_mode_that_nothing_registers(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="not in enum type Mode_caller"):
        execute(_definitions(tmp_path), instance, _chosen("callers"))


def test_asset_specs_name_it(tmp_path: Path) -> None:
    spec = spec_of(_definitions(tmp_path, _concurrency_mode="caller"), "docs", "node")
    assert "mode | caller" in spec.metadata["dagster_dataops/options"].md_str


@pytest.mark.parametrize(("separate_processes", "expected"), [(True, [6, 3, 2]), (False, [6] * 3)])
def test_steps_share_the_cores_of_workplaces_with_processes(
    separate_processes: bool,
    expected: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    register_workplace(
        "six", InTheCaller(), default_workers=6, separate_processes=separate_processes
    )
    found = []
    with ExitStack() as stack:
        for _ in range(3):
            settings = ExecutionSettings(concurrency_mode="six")
            fair = stack.enter_context(fair_settings(doubled(), settings))
            found.append(fair.resolved(asynchronous=False).max_workers)
    assert found == expected


def test_types_of_other_modes_have_other_names() -> None:
    before = mode_type(coroutines=True)
    register_workplace("other", InTheCaller(), default_workers=1)
    after = mode_type(coroutines=True)
    assert (before.given_name, after.given_name) == ("AsyncMode_caller", "AsyncMode_caller_other")
    assert after.config_values == [*before.config_values, "other"]


_OPERATORS = """
from dagster_dataops import data_register, register_workplace
from tests.test_workplaces import InTheCaller

register_workplace("yaml_caller", InTheCaller(), default_workers=2)


@data_register("data.{group}")
def halved(record):
    return {{"n": record["n"] / 2}}
"""
_YAML = """
name: docs
source: texts.jsonl
modules: [places.py]
operators:
  - name: node
    operator: "{group}.halved"
    concurrency_mode: MODE
"""


def test_a_defs_yaml_takes_the_modes_that_its_modules_register(project) -> None:
    path = project.write(_YAML.replace("MODE", "yaml_caller"))
    (path.parent / "places.py").write_text(textwrap.dedent(_OPERATORS).format(group=project.group))
    with project.component() as (_, definitions):
        (spec,) = [one for one in definitions.resolve_all_asset_specs() if "node" in one.key.path]
        assert r"| yaml\_caller" in spec.metadata["dagster_dataops/options"].md_str


def test_an_unknown_mode_in_a_defs_yaml_is_refused_with_its_line(project) -> None:
    path = project.write(_YAML.replace("MODE", "yaml_callers"))
    (path.parent / "places.py").write_text(textwrap.dedent(_OPERATORS).format(group=project.group))
    text = r"defs.yaml:\d+.*must be one of process, thread, async, single, caller, yaml_caller"
    with pytest.raises(DefsYamlError, match=f"(?s){text}"), project.component():
        pass
