"""Tests of the names that ``import dagster_dataops`` exports, and of its cost."""

import collections
import importlib
import pickle
import re
import textwrap
import tomllib
from pathlib import Path

import pytest

import dagster_dataops
from dagster_dataops import assets, readers, testing
from dagster_dataops.assets import PlannedPipeline
from tests.documented_names import public_names
from tests.each import each

PACKAGE = Path(dagster_dataops.__file__).parent


def test_the_public_names_are_sorted_and_unique():
    assert dagster_dataops.__all__ == sorted(set(dagster_dataops.__all__))


@each("name", public_names("dagster_dataops"))
def test_every_public_name_resolves(name):
    assert getattr(dagster_dataops, name) is not None


def test_dir_shows_the_public_names():
    assert dir(dagster_dataops) == sorted([*dagster_dataops.__all__, "__version__"])


def subjects_of_help():
    """Return the names that the docstring of the package lists, by subject."""
    lines = re.findall(r"(?m)^(\S[^,.\n]*?)? {2,}(\w+(?:,\n? *\w+)*)$", dagster_dataops.__doc__)
    return {subject.strip(): re.findall(r"\w+", names) for subject, names in lines}


def subjects_of_stub():
    """Return the names that the stub imports, by subject."""
    text = Path(dagster_dataops.__file__).with_suffix(".pyi").read_text()
    blocks = re.findall(r"(?m)^# (.+)\n((?:(?:from|    |\)).*\n)+)", text)
    return {subject: set(re.findall(r" as (\w+)", imports)) for subject, imports in blocks}


def test_help_shows_the_most_wanted_names_by_subject():
    stub = subjects_of_stub()
    listed = subjects_of_help()

    assert list(listed) == list(stub)
    for subject, names in listed.items():
        assert set(names) <= stub[subject]
    assert sorted(name for names in listed.values() for name in names) == dagster_dataops.__all__
    assert 35 <= len(dagster_dataops.__all__) <= 46


def test_the_reference_has_the_subjects_of_help_in_the_same_order():
    text = (PACKAGE.parent / "docs/reference/index.md").read_text()
    pages = re.findall(r"(?m)^\| \[(.+?)\]", text)

    assert [page for page in pages if page in subjects_of_help()] == list(subjects_of_help())


def test_the_version_is_that_of_the_distribution():
    text = (Path(dagster_dataops.__file__).parents[1] / "pyproject.toml").read_text()
    assert tomllib.loads(text)["tool"]["hatch"]["version"]["path"] == "dagster_dataops/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", dagster_dataops.__version__)


MODULES_WITH_NAMES = ["assets", "checks", "combine", "graphs", "llm", "loading", "readers"]


@each("module", [*MODULES_WITH_NAMES, "testing", "text"])
def test_dir_shows_only_the_public_names_of_a_module(module):
    found = getattr(dagster_dataops, module)
    assert dir(found) == sorted(found.__all__)
    assert all(hasattr(found, name) for name in found.__all__)


@each("name", [*MODULES_WITH_NAMES, "errors", "testing", "text"])
def test_a_module_that_the_package_shows_can_be_imported_from(name):
    module = importlib.import_module(f"dagster_dataops.{name}")
    assert module is getattr(dagster_dataops, name)
    assert all(hasattr(module, one) for one in getattr(module, "__all__", ()))


@each("module", ["crude", "llm", "loading"])
def test_a_module_has_the_names_of_its_subject(module):
    found = importlib.import_module(f"dagster_dataops.{module}")
    subject = {"crude": "Crude data", "llm": "Language models", "loading": "Loaders"}[module]
    module_itself = {module} - {"crude"}  # the function has the name of the module
    assert set(found.__all__) == subjects_of_stub()[subject] - module_itself
    for name in found.__all__:
        assert getattr(found, name) is not None


USE_CRUDE = textwrap.dedent(
    """
    import inspect
    import dagster_dataops
    from dagster_dataops import crude
    assert crude.Cooker is dagster_dataops.crude.Cooker is dagster_dataops.Cooker
    from dagster_dataops.crude import Cooker, crude as function
    assert crude is dagster_dataops.crude
    assert inspect.signature(crude) == inspect.signature(function)
    try:
        dagster_dataops.crude("missing_folder")
    except dagster_dataops.DataOpsError as error:
        print(type(error).__name__)
    """
)


def test_crude_is_a_function_and_a_module(run_python):
    assert run_python(USE_CRUDE).strip() == "InputError"


IDENTITY = """
from dagster_dataops import crude, data_register
import functools

opened = functools.partial(crude, "folder")

@data_register("data.of_crude")
def by_name(record, read=crude):
    return [crude, opened]

code = by_name().__dataops__
print(code.spec.code_version, code.options_digest)
"""


def test_the_identity_of_code_that_names_crude_does_not_depend_on_imports(run_python):
    """A module that can be called counts as the function, which it was in version 0.2."""
    first = "import importlib; importlib.import_module('dagster_dataops.crude')"
    assert run_python(IDENTITY) == run_python(f"{first}\n{IDENTITY}")
    assert run_python(IDENTITY) == run_python(
        IDENTITY.replace("import functools", "import functools; crude = crude.crude")
    )


@each("name", assets.__all__)
def test_every_part_of_assets_resolves(name):
    assert getattr(assets, name) is not None


@each("name", readers.__all__)
def test_every_reader_resolves(name):
    assert getattr(readers, name).__name__ == name


def test_the_helper_for_tests_of_streams_has_a_separate_module():
    assert testing.assert_resumes_anywhere.__module__ == "dagster_dataops.testing"


def test_public_classes_pickle_by_reference():
    names = ["JsonlDataset", "Operator", "Pipeline", "RunReport"]
    for cls in [PlannedPipeline, *(getattr(dagster_dataops, name) for name in names)]:
        assert pickle.loads(pickle.dumps(cls)) is cls


MODULES = [path for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]


def repeated(names):
    return [name for name, count in collections.Counter(names).items() if count > 1]


def test_no_two_modules_have_the_same_name():
    assert not repeated(path.stem for path in MODULES)


def test_no_two_classes_have_the_same_name():
    # The operators have names of their own in each group, such as filters.Url and dedup.Url.
    groups = {PACKAGE / "library"}
    engine = [path.read_text() for path in MODULES if not groups.intersection(path.parents)]

    assert not repeated(name for text in engine for name in re.findall(r"(?m)^class (\w+)", text))


RUN_AN_OPERATOR = textwrap.dedent(
    """
    import sys
    from dagster_dataops import data, data_register, pipeline

    @data_register("data.lean", _concurrency_mode=sys.argv[1] if sys.argv[1:] else "MODE")
    def double(data: dict, key="n"):
        data[key] *= 2
        return data

    @data_register("data.lean", rewrite_func="forward_batch_input")
    def backwards(data: list):
        return data[::-1]

    assert data.lean.double()([{"n": 1}, {"n": 2}]) == [{"n": 2}, {"n": 4}]
    with pipeline() as ppl:
        ppl.double = data.lean.double()
        ppl.backwards = data.lean.backwards()
    assert ppl([{"n": 1}, {"n": 2}]) == [{"n": 4}, {"n": 2}]
    loaded = {name.split(".")[0] for name in sys.modules}
    streams = {name for name in sys.modules if name.startswith("dagster_dataops.streams.")}
    print(sorted(streams | loaded & {"dagster", "dagster_shared", "pandas", "numpy", "polars"}))
    """
)


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_running_operators_and_pipelines_imports_neither_dagster_nor_streams(run_python, mode):
    assert run_python(RUN_AN_OPERATOR.replace("MODE", mode)) == "[]\n"


WATCHED = textwrap.dedent(
    """
    import os, sys, threading

    WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    touched = []

    def watch(event, arguments):
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            touched.append((event, arguments[0]))
        elif event in {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink"}:
            touched.append((event, arguments[0]))
        elif event in {"socket.connect", "os.fork", "subprocess.Popen"}:
            touched.append((event,))

    sys.addaudithook(watch)
    from dagster_dataops import config, data, data_register, pipeline

    group = data_register.new_group("untouched")

    @data_register("data.untouched")
    def one(data: dict, key="n"):
        return data

    class Two(group):
        def forward(self, data):
            return data

    operator = data.untouched.one(key="m").set_output("somewhere/below")
    with pipeline("docs") as ppl:
        ppl.one = operator
        ppl.two = data.untouched.Two(_max_workers=2)
    repr(operator), operator.__dataops__.options_digest, ppl.graph.ordered()
    config.data_process_path
    assert threading.active_count() == 1
    print(touched, os.listdir("."))
    """
)


def test_importing_registering_and_constructing_do_not_access_the_disk(run_python):
    assert run_python(WATCHED) == "[] ['script.py']\n"
