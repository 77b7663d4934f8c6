"""Tests of errors in a defs.yaml: file, line, node and remedy."""

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.resolved.errors import ResolutionException

from dagster_dataops import OperatorDeclaration, OperatorPipelineComponent
from dagster_dataops.errors import DefsYamlError, OperatorOptionError, UnknownOperatorError
from tests.assets.component_project import WARNED_OF

pytestmark = WARNED_OF

LINES = """
name: docs
source: texts.jsonl
modules: [operators.py]
operators:
  - name: first_1
    operator: "{group}.mark"
    options: {key: seen}
  - name: second
    operator: "{group}.Picky"
    max_workers: 2
""".lstrip()


def error_of(project, given, instead):
    """Load LINES with one line changed; return the error, and the place of the changed line."""
    path = project.write(LINES.replace(given, instead))
    written = instead.splitlines()[-1].replace("{group}", project.group)
    lines = path.read_text().splitlines()
    number = max(number for number, text in enumerate(lines, 1) if written in text)
    return raised_by(project), f"{path}:{number}"


def raised_by(project):
    """Load the component; return the error without Dagster's message about the folder."""
    try:
        with project.component():
            pass
    except ComponentTreeException as error:
        return error.__cause__
    except DefsYamlError as error:
        return error
    raise AssertionError("it loads")


@pytest.mark.parametrize(
    ("given", "instead", "subject", "reason"),
    [
        ('"{group}.mark"', '"{group}.marks"', "node 'first_1'", "Did you mean {group}.mark?"),
        (
            '"{group}.mark"',
            "nothing_like.this",
            "node 'first_1'",
            "To use your own operators, name the file that registers them in `modules`",
        ),
        (
            "key: seen",
            "kay: seen",
            "node 'first_1'",
            "'kay' is unknown; did you mean 'key'?",
        ),
        ("max_workers: 2", "timeout: '{{ [] }}'", "node 'second'", "must be a number of seconds"),
        (
            "max_workers: 2",
            "concurrency_mode: async",
            "node 'second'",
            "is 'async', which needs an `async def` operator",
        ),
        ("max_workers: 2", "options: {size: 10}", "node 'second'", "ValueError: size is at most 9"),
        (
            "max_workers: 2",
            "options: {max_workers: 2}",
            "node 'second'",
            "write the execution setting 'max_workers' beside `options`",
        ),
        ("max_workers: 2", "inputs: [first_one]", "node 'second'", "did you mean 'first_1'?"),
        ("name: second", "name: materialize", "node 'materialize'", "cannot name a node"),
        ("[operators.py]", "[operator.py]", "module 'operator.py'", "a Python file or a module"),
        ("[operators.py]", "[no.such_module]", "module 'no.such_module'", "ModuleNotFoundError"),
        ("texts.jsonl", "{function: made_down}", "source", "a function in one of `modules`"),
    ],
)
def test_an_error_names_file_line_and_node(project, given, instead, subject, reason):
    error, place = error_of(project, given, instead)

    assert isinstance(error, DefsYamlError)
    assert str(error).startswith(f"{place}, {subject}: ")
    assert reason.replace("{group}", project.group) in error.reason


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("row_count: {}", "given min, max or both"),
        ("row_count: {min: 3, max: 2}", "min <= max"),
        ("max_dropped: 1.5", "must be in [0, 1]"),
        ("no_nulls: []", "one or more names of columns"),
        ("json_schema: {type: texts}", "a JSON Schema"),
        ("json_schema: nowhere.json", "the path of a JSON file"),
    ],
)
def test_an_invalid_check_is_reported_with_its_line(project, written, reason):
    error, place = error_of(
        project, "max_workers: 2", f"checks:\n      - unique: [id]\n      - {written}"
    )

    assert isinstance(error, DefsYamlError)
    assert error.place == place
    assert error.subject == "node 'second'"
    assert reason in error.reason


NAMED = "checks:\n      - unique: [id]\n        name: not a name"
WARNING = "checks:\n      - unique: [id]\n        blocking: true\n        severity: WARN"
ASSET = "source: {asset: raw/texts}\nsource_checks: [{unique: id}]"


@pytest.mark.parametrize(
    ("given", "instead", "reason"),
    [
        ("max_workers: 2", NAMED, "ASCII letters, digits and underscores"),
        ("max_workers: 2", WARNING, "ERROR for a check that blocks"),
        ("max_workers: 2", "max_error_rate:\n      severity: GRAVE", "WARN or ERROR"),
        ("max_workers: 2", "max_error_rate: 1.5", "in [0, 1]"),
        ("max_workers: 2", "max_error_rate: checked", "is 'checked'; it must be in [0, 1]"),
        ("name: docs", "max_error_rate: 1.5", "in [0, 1]"),
        ("name: docs", "source_checks:\n- json_schema: nowhere.json", "the path of a JSON file"),
        ("source: texts.jsonl", ASSET, "declare its checks there"),
        ("name: second", "name: first_1", "two nodes are called 'first_1'"),
        ("texts.jsonl", '"{partition}.jsonl"', "partitions"),
        ("max_workers: 2", "max_workers: many", "must be "),
        ("max_workers: 2", "retries: -1", "must be "),
        ("max_workers: 2", "concurrency_mode: parallel", "must be "),
        ("max_workers: 2", "timeout: soon", "must be "),
    ],
)
def test_an_invalid_value_is_reported_with_its_line(project, given, instead, reason):
    error, place = error_of(project, given, instead)

    assert isinstance(error, DefsYamlError)
    assert error.place == place
    assert reason in error.reason


def test_two_checks_of_one_name_are_an_error_at_the_checks_of_the_node(project):
    error, _ = error_of(
        project, "max_workers: 2", "checks: [{unique: id}, {no_nulls: id}, {no_nulls: id}]"
    )

    assert "two checks 'no_nulls_id'" in error.reason
    assert error.subject == "node 'second'"


def test_a_cycle_is_reported_at_the_pipeline(project):
    circle = LINES.replace("    options: {key: seen}", "    inputs: [second]")
    path = project.write(circle)

    error = raised_by(project)

    assert "its inputs form a cycle" in error.reason
    assert error.subject == "pipeline 'docs'"
    assert error.place.startswith(str(path))


def test_an_error_shows_the_lines_around(project):
    error, _ = error_of(project, "key: seen", "kay: seen")

    assert "     options: {kay: seen}" in error.excerpt
    assert "^ here" in error.excerpt


def test_a_module_that_fails_keeps_its_own_error(project):
    path = project.write(LINES)
    (path.parent / "operators.py").write_text("1 / 0\n")

    error = raised_by(project)

    assert isinstance(error, DefsYamlError)
    assert "ZeroDivisionError" in error.reason
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_file_outside_the_defs_folder_is_refused_with_a_remedy(project, tmp_path):
    project.write(LINES.replace("operators.py", f"{tmp_path}/mine.py"))
    (tmp_path / "mine.py").write_text("")

    assert "or the name of a module" in raised_by(project).reason


@pytest.mark.parametrize(
    ("given", "instead", "where"),
    [
        ("max_workers: 2", "max_worker: 2", "operators.1.max_worker"),
        ("source: texts.jsonl", "sauce: texts.jsonl", "sauce"),
        ("name: docs", "schedule: 5", "schedule"),
        ("name: docs", "schedule: {cron: '@daily', zone: UTC}", "schedule.zone"),
        ("name: docs", "schedule: {timezone: UTC}", "schedule.cron"),
        ("name: docs", "jobs: [pipelines]", "jobs.0"),
        ("name: docs", "job_tags: {priority: 3}", "job_tags.priority"),
        ("name: docs", "job_owners: [[a]]", "job_owners.0"),
        ("name: docs", "op_tags: {source: gpu}", "op_tags.source"),
        ("max_workers: 2", "op_tags: gpu", "operators.1.op_tags"),
        ("name: docs", "retry_policy: {max_retrys: 5}", "retry_policy.max_retrys"),
        ("name: docs", "resource: {rot: here}", "resource.rot"),
        ("max_workers: 2", "options: 3", "operators.1.options"),
        ('"{group}.mark"', "mark", "operators.0.operator"),
        ("max_workers: 2", "checks:\n      - uniq: [id]", "operators.1.checks.0.uniq"),
        ("name: docs", "source_checks: [{row_count: {a: 1}}]", "source_checks.0.row_count.a"),
    ],
)
def test_a_wrong_field_is_reported_with_its_line(project, given, instead, where):
    error, place = error_of(project, given, instead)

    assert f"attributes.{where} at {place}" in str(error)


def test_a_source_of_two_kinds_is_reported_with_its_line(project):
    error, place = error_of(project, "texts.jsonl", "{function: a, asset: b}")

    assert place in str(error)
    assert "a source must be a path, `asset: <key>` or `function: <name>`" in str(error)


def test_a_url_as_the_root_is_reported_with_its_line(project):
    error, place = error_of(project, "name: docs", "resource: {root: 'ftp://host/results'}")

    assert place in str(error)
    assert "Setting root is 'ftp://host/results'" in str(error)
    assert "a path on this machine" in str(error)


def test_a_check_of_two_kinds_is_reported_with_its_line(project):
    error, place = error_of(
        project, "max_workers: 2", "checks:\n      - {unique: id, no_nulls: id}"
    )

    assert place in str(error)
    assert "a check is one of blend_shares, json_schema" in str(error)


def test_an_unknown_template_name_is_reported_with_its_line(project):
    error, place = error_of(project, "key: seen", "key: '{{ nobody }}'")

    assert isinstance(error, ResolutionException)
    assert "nobody" in str(error)
    assert place in str(error)


def test_a_component_made_in_python_raises_the_errors_themselves(project):
    path = project.write(LINES)
    wrong = {"mine.nothing": UnknownOperatorError, "dedup.Exact": OperatorOptionError}

    for operator, expected in wrong.items():
        node = OperatorDeclaration(name="a", operator=operator, options={"no_option": 1})
        component = OperatorPipelineComponent(source=dg.AssetKey("a"), operators=[node])
        with project.sandbox.build_component_tree() as tree, pytest.raises(expected):
            component.build_defs(tree.load_context.for_path(path.parent))


@pytest.mark.parametrize(
    ("given", "instead", "said"),
    [
        (
            "name: docs",
            "schedule: {cron: '@daily', timezone: Mars}",
            "Setting schedule.timezone is 'Mars'; it must be the name of a time zone, such as",
        ),
        (
            "name: docs",
            "schedule: nightly",
            "Setting schedule is 'nightly'; it must be a cron line",
        ),
        (
            "name: docs",
            "schedule: {cron: '@daily', running: maybe}",
            "Setting schedule.running is 'maybe'; it must be true or false",
        ),
        ("name: docs", "schedule: {cron: '@daily', tags: {a b: c}}", "Setting schedule.tags is"),
        ("name: docs", "job_tags: {a b: c}", "Setting job_tags is {'a b': 'c'}; it must be"),
        ("name: docs", "job_owners: [search]", "Setting job_owners is ['search']; it must be"),
        ("name: docs", "job_hooks: slack", "Setting job_hooks is 'slack'; it must be"),
        ("name: docs", "resource_key: a b", "Setting resource_key is 'a b'; it must be"),
        ("max_workers: 2", "op_tags: {a b: c}", "Setting op_tags.second is {'a b': 'c'}"),
        ("name: docs", "op_tags: {frist: {}}", "which is not a node; did you mean 'first_1'"),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(project, given, instead, said):
    error, place = error_of(project, given, instead)

    assert said in str(error)
    assert place in str(error)
