"""Tests of dagster_dataops.foundation.entry_points: what installed packages add."""

import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dagster_dataops
from dagster_dataops import checks, readers
from dagster_dataops.assets.checks.check_functions import check_kind_named
from dagster_dataops.assets.checks.declared_check import check_kind
from dagster_dataops.data import data_register
from dagster_dataops.datasets.exporters.endings import check_output, names_file
from dagster_dataops.errors import DefinitionError, EntryPointError, UnknownOperatorError
from tests.installed_packages import install
from tests.registries import OperatorRegistry

ROOT = Path(dagster_dataops.__file__).parents[1]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("packages") / "target")


def run_script(target: Path, folder: Path, *command: str) -> str:
    paths = os.pathsep.join([str(target), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "DAGSTER_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PLAIN = """
import pydoc
import sys
from dagster_dataops import checks, config, data, pipeline, readers

def loaded():
    return sorted(name for name in sys.modules if name.startswith("acme_ops."))

if __name__ == "__main__":
    config.data_process_path = "results"
    assert {"acme", "text"} <= set(dir(data))
    assert "read_acme" in dir(readers) and "only_words" in dir(checks)
    assert loaded() == [], loaded()
    with pipeline("words") as ppl:
        ppl.clean = data.acme.Clean(_concurrency_mode="process", _max_workers=2)
        ppl.loud = data.acme.shout().set_output("out.acme.txt")
    assert loaded() == ["acme_ops.exporting", "acme_ops.operators"], loaded()
    ppl(readers.read_acme(3))
    print(open("out.acme.txt").read())
    assert "shout" in dir(data.acme) and "Remove a mark" in data.acme.__doc__
    assert data.acme.__doc__.startswith("Operators of Acme."), data.acme.__doc__
    assert "acme" in pydoc.render_doc(data)
    assert checks.only_words("text").name == "only_words"
"""


@pytest.mark.slow
def test_an_installed_package_adds_operators_readers_exporters_and_checks(
    target: Path, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(PLAIN)
    assert run_script(target, tmp_path, "script.py") == "WORD 0\nWORD 1\nWORD 2\n\n"


LOCATION = """
from pathlib import Path

from dagster_dataops import DataOpsResource, build_definitions, data, pipeline, readers

with pipeline("words") as ppl:
    ppl.clean = data.acme.Clean(_max_workers=2)
    ppl.loud = data.acme.shout()
resource = DataOpsResource(root=str(Path("root").absolute()))
defs = build_definitions(
    ppl, source=readers.read_acme(3), resource=resource, layout="single_step"
)
"""
YAML = """
import sys

import dagster as dg
from dagster.components.testing import create_defs_folder_sandbox

from tests.assets.component_project import Project

with create_defs_folder_sandbox() as sandbox:
    project = Project(sandbox)
    project.write('''
        name: texts
        source: texts.jsonl
        resource: {root: results}
        operators:
          - name: clean
            operator: acme.Clean
            checks:
              - only_words: text
              - only_words: other
                name: others
    ''')
    assert not {"acme_ops.operators", "acme_ops.checking"} & set(sys.modules)
    with project.loaded() as definitions:
        result = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            raise_on_error=False
        )
        checks = result.get_asset_check_evaluations()
        print({check.check_name: check.passed for check in checks})
"""


@pytest.mark.slow
def test_a_defs_yaml_names_operators_and_checks_of_an_installed_package(
    target: Path, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(YAML)
    shown = run_script(target, tmp_path, "script.py")
    assert "'only_words': True" in shown
    assert "'others': False" in shown


@pytest.mark.slow
def test_a_code_location_finds_what_an_installed_package_adds(target: Path, tmp_path: Path) -> None:
    (tmp_path / "location.py").write_text(LOCATION)
    command = ("-m", "dagster", "asset", "materialize", "-f", "location.py", "--select", "*")
    run_script(target, tmp_path, *command)
    result = tmp_path / "root" / "words" / "loud" / "loud_results.jsonl"
    assert result.read_text().splitlines()[2] == '{"text":"WORD 2"}'


def registry_over(monkeypatch: pytest.MonkeyPatch, target: Path) -> OperatorRegistry:
    monkeypatch.syspath_prepend(str(target))
    return data_register


def points(group: str, *lines: str) -> str:
    return "\n".join([f"[dagster_dataops.{group}]", *lines])


def test_an_entry_that_cannot_be_imported_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modules = {
        "broken_ops.py": "import a_module_that_is_not_there",
        "ending_ops.py": "raise SystemExit(3)",
        "wrong_ops.py": "def (",
    }
    causes = {
        "broken": ("broken_ops", "a_module_that_is_not_there"),
        "absent": ("no_such_module", "no_such_module"),
        "ending": ("ending_ops", "SystemExit: 3"),
        "wrong_text": ("wrong_ops", "SyntaxError"),
        "malformed": ("two words", "is malformed; write 'module' or 'module:name'"),
    }
    entries = points("operators", *(f"{name} = {value}" for name, (value, _) in causes.items()))
    registry = registry_over(monkeypatch, install(tmp_path / "t", modules, entries, "broken-ops"))
    assert {*causes, "text"} <= set(registry.groups())
    for name, (_, found) in causes.items():
        with pytest.raises(EntryPointError, match=f"{name}.*broken-ops 1.2.*{found}") as caught:
            registry.group(name)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert registry.operator("text", "Normalize")


def test_two_packages_with_one_name_are_both_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        entries = points("operators", f"shared = {name}_ops")
        install(tmp_path / "t", {f"{name}_ops.py": ""}, entries, f"{name}-ops")
    registry = registry_over(monkeypatch, tmp_path / "t")
    with pytest.raises(EntryPointError, match=r"first-ops 1.2: second-ops 1.2 has one of this na"):
        registry.group("shared")


def test_a_name_of_this_package_wins_and_the_other_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = points("operators", "text = own_text", "two words = own_text")
    registry = registry_over(monkeypatch, install(tmp_path / "t", {}, entries, "own-text"))
    assert registry.operator("text", "Normalize")
    with caplog.at_level(logging.WARNING), pytest.raises(UnknownOperatorError):
        registry.operator("text", "OfTheirs")
    assert "'text'" in caplog.text
    assert "own-text 1.2: dagster-dataops has one" in caplog.text
    assert "'two words'" in caplog.text
    assert "two words" not in registry.groups()


WRONG = """
from dagster_dataops import checks

number = 3

def no_exporter():
    return 3

def no_check(column):
    return checks.no_nulls(column)
"""


def test_an_entry_that_names_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "\n".join(
        [
            points("operators", "empty_group = wrong_things", "a_number = wrong_things:number"),
            points("readers", "read_number = wrong_things:number"),
            points("exporters", "wrong = wrong_things:no_exporter", "jsonl = wrong_things:number"),
            points("checks", "no_check = wrong_things:no_check", "unique = wrong_things:no_check"),
        ]
    )
    target = install(tmp_path / "t", {"wrong_things.py": WRONG}, text, "wrong-things")
    registry = registry_over(monkeypatch, target)
    uses: list[tuple[str, Any]] = [
        (
            "wrong_things is a module; it must name a module that registers",
            lambda: registry.group("empty_group"),
        ),
        ("wrong_things:number is of type int", lambda: registry.group("a_number")),
        ("must name a function or class that returns a stream", lambda: readers.read_number),
        ("must name a class or function without arguments", lambda: check_output(Path("a.wrong"))),
        ("decorated by checks.check_kind", lambda: checks.no_check),
        ("decorated by checks.check_kind", lambda: check_kind_named("no_check")),
    ]
    for reason, use in uses:
        with pytest.raises(EntryPointError, match=f"wrong-things 1.2: .*{reason}"):
            use()
    assert checks.unique("id").name == "unique_id"
    assert names_file(Path("a.wrong"))
    assert not names_file(Path("a.other"))


def test_a_check_cannot_take_the_name_of_another() -> None:
    def unique(column: str) -> Any:
        return checks.no_nulls(column)

    with pytest.raises(DefinitionError, match=r"the check 'unique' of .* has the name of one of"):
        check_kind({})(unique)
    assert check_kind_named("unique").declare is checks.unique


def test_names_that_no_package_adds_are_no_attributes() -> None:
    for module in (readers, checks):
        with pytest.raises(AttributeError, match="no attribute 'absent'"):
            module.absent  # noqa: B018 - it raises


@pytest.mark.parametrize("group", ["dagster_dataops.operators", "console_scripts"])
def test_a_malformed_list_of_another_package_hides_its_own_entries_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    group: str,
) -> None:
    broken = f"[{group}]\nno equals sign\n"
    lists = {"broken": broken, "whole": "[dagster_dataops.operators]\nwhole_group = nothing\n"}
    for name, entries in lists.items():
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert "whole_group" in dir(dagster_dataops.data)
    assert "the entry points of package broken cannot be read" in caplog.text
