"""Tests of the wheel and the sdist: what they hold, and what a user gets who installs them.

They build both, or take those in the folder ``DISTRIBUTIONS``, as the release workflow does.
"""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from email.message import Message
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.pages import DOCS, ROOT, read_page

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGE = ROOT / "dagster_dataops"
REPOSITORY = PROJECT["urls"]["Source"]

# A user of the wheel sees neither this checkout nor the settings of the tests.
_ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("DATAOPS_", "PYTHON", "VIRTUAL_ENV"))
}

_FROM_THE_WHEEL = """

import sys as _sys

_modules = {name: one for name, one in _sys.modules.items() if name.startswith("dagster_dataops")}
_elsewhere = [name for name, one in _modules.items() if _sys.prefix not in one.__file__]
assert "dagster_dataops.execution.executor" in _modules and not _elsewhere, _elsewhere
"""

_ALL_NAMES = """
import importlib, inspect
from importlib.metadata import entry_points

import dagster_dataops
from dagster_dataops import assets, data, data_register, readers

for package in (dagster_dataops, assets, readers):
    for name in package.__all__:
        getattr(package, name)
for group in data_register.groups():
    for name in data_register.operators(group):
        inspect.signature(getattr(getattr(data, group), name))
(module,) = entry_points(group="dagster_dg_cli.registry_modules", name="dagster_dataops")
assert module.load() is dagster_dataops
print(len(data_register.groups()))
"""

_WITHOUT_EXTRA = """
from dagster_dataops import data
from dagster_dataops.errors import MissingExtraError

try:
    data.html.Extract()
except MissingExtraError as error:
    print(error)
"""

_TYPED = '''
from pathlib import Path
from typing import Any, assert_type

import dagster as dg

from dagster_dataops import (
    DataPipeline,
    JsonlDataset,
    LLMOperator,
    ModelClient,
    Operator,
    Pipeline,
    RunReport,
    Trace,
    build_definitions,
    chain,
    checks,
    config,
    data,
    data_register,
    load_result,
    pipeline,
    read_jsonl,
    trace,
)


@data_register("data.typed", _concurrency_mode="thread")
def upper(record: dict[str, Any], input_key: str = "text") -> dict[str, Any]:
    """Write a text in capital letters."""
    record[input_key] = record[input_key].upper()
    return record


@data_register("data.typed")
class Suffix(Operator):
    """Add a suffix to a text."""

    def __init__(self, suffix: str, input_key: str = "text", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suffix, self.input_key = suffix, input_key

    def forward(self, record: dict[str, Any]) -> dict[str, Any]:
        """Add it."""
        record[self.input_key] += self.suffix
        return record


with pipeline("typed") as ppl:
    ppl.unique = data.dedup.Exact(input_key="text")
    ppl.upper = upper(input_key="text")
    ppl.suffix = Suffix(suffix="!")

assert_type(ppl, Pipeline)
assert_type(upper({"text": "a"}), dict[str, Any])
assert_type(upper(input_key="text"), Operator)
assert_type(Suffix(suffix="!"), Suffix)
assert_type(Suffix(suffix="!").suffix, str)
assert_type(Suffix(suffix="!", _max_workers=2).set_output("a.jsonl"), Suffix)
print(Suffix(suffix="!")([{"text": "a"}]))
assert_type(ppl.materialize([]), dict[str, RunReport])
assert_type(
    build_definitions(ppl, source="a.jsonl", checks={"upper": [checks.row_count(min=1)]}),
    dg.Definitions,
)
assert_type(load_result("data_pipeline_res/typed/upper"), JsonlDataset)
assert_type(read_jsonl("a.jsonl").map(len).and_return(), DataPipeline)
assert_type(trace("data_pipeline_res/typed/upper", 1), Trace)
assert_type(config.data_process_path, Path)
asks = LLMOperator(prompt="Say {text}", model="m")
assert_type(asks, LLMOperator)
assert_type(ModelClient(), ModelClient)
chained: Operator = chain(asks, asks)
'''

_WRONG = """
from typing import Any

from dagster_dataops import build_definitions, data_register, load_result, pipeline
from typed import Suffix


@data_register("data.wrong")
def upper(record: dict[str, Any], input_key: str = "text") -> dict[str, Any]:
    return record


with pipeline("wrong") as ppl:
    pass
build_definitions(ppl, source="a.jsonl", source_file="a.jsonl")  # wrong
build_definitions(ppl, source=3)  # wrong
build_definitions("wrong", source="a.jsonl")  # wrong
upper("text")  # wrong
Suffix(suffix=1)  # wrong
Suffix()  # wrong
load_result("a").rows.upper()  # wrong
"""


class Installed(NamedTuple):
    """An environment with nothing but the wheel and what it needs."""

    python: Path

    def run(self, code: str, folder: Path, **environment: str) -> str:
        """Run code in a folder, without what else is on this machine; return what it prints."""
        script = folder / "script.py"
        script.write_text(code)
        done = subprocess.run(
            [self.python, script.name],
            check=False,
            cwd=folder,
            env=_ENVIRONMENT | environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a wheel and an sdist."""
    if given := os.environ.get("DISTRIBUTIONS"):
        return ROOT / given
    for needed in ("build", "hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(needed, reason=f"{needed} is of the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    """Return the path of the wheel."""
    (path,) = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """Return the metadata of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return an empty environment after the installation of the wheel."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    python = folder / "bin" / "python"
    by_uv = [
        ("venv", "--python", sys.executable, folder),
        ("pip", "install", "--python", python, wheel),
    ]
    # uv does not read the settings of pip; where only these name the index, pip installs.
    if find_spec("uv") and not any(_status("uv", *command) for command in by_uv):
        return Installed(python)
    assert not _status("venv", "--clear", folder)
    assert not _status("pip", "--python", python, "install", "--quiet", wheel)
    return Installed(python)


def _status(*command: str | Path) -> int:
    """Run a module of this interpreter; return its exit status."""
    full = [sys.executable, "-m", *command]
    return subprocess.run(full, check=False, env=_ENVIRONMENT).returncode


def needed_by(metadata: Message, extra: str = "") -> dict[str, SpecifierSet]:
    """Return the versions that an installation with an extra needs, by package."""
    every = [Requirement(one) for one in metadata.get_all("Requires-Dist", [])]
    return {
        one.name: one.specifier
        for one in every
        if one.marker is None or one.marker.evaluate({"extra": extra})
    }


def test_the_project_names_its_authors_addresses_and_keywords() -> None:
    assert [list(author) for author in PROJECT["authors"]] == [["name"]]
    assert set(PROJECT["urls"]) == {"Documentation", "Source", "Changelog", "Issues"}
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())
    assert all(PROJECT["urls"][name].startswith(REPOSITORY) for name in ("Changelog", "Issues"))
    assert PROJECT["keywords"] == sorted(set(PROJECT["keywords"]))
    assert (ROOT / "LICENSE").read_text().split()[:2] == ["Apache", "License"]
    assert PROJECT["license"] == "Apache-2.0"


def test_the_classifiers_are_known_and_name_the_tested_pythons() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    pythons = [one for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", one)]

    assert sorted(set(PROJECT["classifiers"]) - known) == []
    assert not any(one.startswith("License ::") for one in PROJECT["classifiers"])
    assert PROJECT["requires-python"] == f">={pythons[0].rpartition(' ')[2]}"


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    files = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }

    assert names == files
    assert {
        "dagster_dataops/py.typed",
        "dagster_dataops/pipelines/view/templates/base.html",
    } < files
    assert len(licences) == 1


@pytest.mark.slow
def test_the_sdist_holds_what_the_tests_need(distributions: Path) -> None:
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    needed = [
        *("README.md", "LICENSE", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml"),
        *(".ci/run", ".github/workflows/ci.yml", "definitions.py", "docs/tutorial.md"),
        *("tests/conftest.py", "benchmarks/run.py", "skills/dagster-dataops/SKILL.md"),
    ]
    assert sorted(set(needed) - names) == []
    assert not [name for name in names if "__pycache__" in name or name.startswith(".git/")]


@pytest.mark.slow
def test_the_distributions_pass_the_check_of_the_registry(distributions: Path) -> None:
    pytest.importorskip("twine", reason="twine is of the extra dev")
    files = sorted(distributions.iterdir())

    assert _status("twine", "check", "--strict", *files) == 0
    assert len(files) == 2


@pytest.mark.slow
def test_the_description_of_the_package_has_no_link_into_the_checkout(metadata: Message) -> None:
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", text)

    assert len(links) > 40
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "<!-- test" not in text
    at = f"v{metadata['Version']}/"
    assert {link.partition(at)[1] for link in links if REPOSITORY in link} == {at}
    paths = [link.partition(at)[2] for link in links if at in link]
    assert [path for path in paths if not (ROOT / path).is_file()] == []


@pytest.mark.slow
def test_the_webserver_is_an_extra(metadata: Message, installed: Installed, tmp_path: Path) -> None:
    looks = "from importlib.util import find_spec\nprint(find_spec('dagster_webserver'))"

    assert "dagster-webserver" not in needed_by(metadata)
    assert needed_by(metadata, "webserver")["dagster-webserver"] == needed_by(metadata)["dagster"]
    assert installed.run(looks, tmp_path) == "None\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [ROOT / "README.md", DOCS / "tutorial.md"], ids=lambda one: one.stem
)
def test_a_page_runs_in_an_empty_environment(
    page: Path, installed: Installed, tmp_path: Path
) -> None:
    code = read_page(page)
    code.write(tmp_path)

    assert code.missing(installed.run(code.script + _FROM_THE_WHEEL, tmp_path)) == []


@pytest.mark.slow
def test_every_name_and_operator_is_there_without_an_extra(
    installed: Installed, tmp_path: Path
) -> None:
    assert int(installed.run(_ALL_NAMES, tmp_path)) > 15
    assert "pip install 'dagster-dataops[html]'" in installed.run(_WITHOUT_EXTRA, tmp_path)


@pytest.mark.slow
def test_a_type_checker_knows_the_types_of_the_package(
    installed: Installed, tmp_path: Path
) -> None:
    pytest.importorskip("mypy", reason="mypy is of the extra dev")
    (tmp_path / "typed.py").write_text(_TYPED)
    (tmp_path / "wrong.py").write_text(_WRONG)
    marked = [n for n, line in enumerate(_WRONG.splitlines(), 1) if line.endswith("# wrong")]

    found = _mypy(installed, tmp_path, "typed.py", "wrong.py")

    assert found == {"wrong.py": marked}
    assert len(marked) == 7


def _mypy(installed: Installed, folder: Path, *files: str) -> Mapping[str, list[int]]:
    """Check files as a user does; return the lines of errors by file."""
    mypy = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={os.devnull}"]
    done = subprocess.run(
        [*mypy, "--python-executable", installed.python, *files],
        check=False,
        cwd=folder,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found: dict[str, list[int]] = {}
    for name, line in re.findall(r"(?m)^([\w./]+):(\d+): error", done.stdout):
        found.setdefault(name, []).append(int(line))
    return {name: sorted(set(lines)) for name, lines in found.items()}
