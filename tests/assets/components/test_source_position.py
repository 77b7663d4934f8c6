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


FIRST, SECOND = "node 'first_1'", "node 'second'"
NAMED = "checks:\n      - unique: [id]\n        name: not a name"
WARNING = "checks:\n      - unique: [id]\n        blocking: true\n        severity: WARN"
TWO_CHECKS = "checks: [{unique: id}, {no_nulls: id}, {no_nulls: id}]"
ASSET = "source: {asset: raw/texts}\nsource_checks: [{unique: id}]"
IN_SECOND = {
    "timeout: '{{ [] }}'": "must be a number of seconds",
    "concurrency_mode: async": "is 'async', which needs an `async def` operator",
    "options: {size: 10}": "ValueError: size is at most 9",
    "options: {max_workers: 2}": "write the execution setting 'max_workers' beside `options`",
    "inputs: [first_one]": "did you mean 'first_1'?",
    NAMED: "ASCII letters, digits and underscores",
    WARNING: "ERROR for a check that blocks",
    TWO_CHECKS: "two checks 'no_nulls_id'",
    "max_error_rate:\n      severity: GRAVE": "WARN or ERROR",
    "max_error_rate: 1.5": "in [0, 1]",
    "max_error_rate: checked": "is 'checked'; it must be in [0, 1]",
    "max_workers: many": "must be ",
    "retries: -1": "must be ",
    "concurrency_mode: parallel": "must be ",
    "timeout: soon": "must be ",
}
CHECKS = {
    "row_count: {}": "given min, max or both",
    "row_count: {min: 3, max: 2}": "min <= max",
    "max_dropped: 1.5": "must be in [0, 1]",
    "no_nulls: []": "one or more names of columns",
    "json_schema: {type: texts}": "a JSON Schema",
    "json_schema: nowhere.json": "the path of a JSON file",
}
INVALID = [
    ('"{group}.mark"', '"{group}.marks"', FIRST, "Did you mean {group}.mark?"),
    (
        '"{group}.mark"',
        "nothing_like.this",
        FIRST,
        "To use your own operators, name the file that registers them in `modules`",
    ),
    ("key: seen", "kay: seen", FIRST, "'kay' is unknown; did you mean 'key'?"),
    ("name: second", "name: materialize", "node 'materialize'", "cannot name a node"),
    ("[operators.py]", "[operator.py]", "module 'operator.py'", "a Python file or a module"),
    ("[operators.py]", "[no.such_module]", "module 'no.such_module'", "ModuleNotFoundError"),
    ("texts.jsonl", "{function: made_down}", "source", "a function in one of `modules`"),
    ("name: docs", "max_error_rate: 1.5", "", "in [0, 1]"),
    ("name: docs", "source_checks:\n- json_schema: nowhere.json", "", "the path of a JSON file"),
    ("source: texts.jsonl", ASSET, "", "declare its checks there"),
    ("name: second", "name: first_1", "", "two nodes are called 'first_1'"),
    ("texts.jsonl", '"{partition}.jsonl"', "", "partitions"),
    *(("max_workers: 2", instead, SECOND, reason) for instead, reason in IN_SECOND.items()),
    *(
        ("max_workers: 2", f"checks:\n      - unique: [id]\n      - {check}", SECOND, reason)
        for check, reason in CHECKS.items()
    ),
]


@pytest.mark.parametrize(("given", "instead", "subject", "reason"), INVALID)
def test_an_error_names_file_line_and_node(project, given, instead, subject, reason):
    error, place = error_of(project, given, instead)

    assert isinstance(error, DefsYamlError)
    assert str(error).startswith(f"{place}, {subject}")
    assert reason.replace("{group}", project.group) in error.reason
    assert f"{instead.splitlines()[-1].replace('{group}', project.group)}" in error.excerpt
    assert "^ here" in error.excerpt


def test_a_cycle_is_reported_at_the_pipeline(project):
    circle = LINES.replace("    options: {key: seen}", "    inputs: [second]")
    path = project.write(circle)

    error = raised_by(project)

    assert "its inputs form a cycle" in error.reason
    assert error.subject == "pipeline 'docs'"
    assert error.place.startswith(str(path))


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


FIELDS = [
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
]
VALUES = [
    (
        "texts.jsonl",
        "{function: a, asset: b}",
        "a source must be a path, `asset: <key>` or `function: <name>`",
    ),
    ("name: docs", "resource: {root: 'ftp://host/a'}", "Setting root is 'ftp://host/a'"),
    ("name: docs", "resource: {root: 'ftp://host/a'}", "a path on this machine"),
    (
        "max_workers: 2",
        "checks:\n      - {unique: id, no_nulls: id}",
        "a check is one of blend_shares, json_schema",
    ),
    ("key: seen", "key: '{{ nobody }}'", "nobody"),
    (
        "name: docs",
        "schedule: {cron: '@daily', timezone: Mars}",
        "Setting schedule.timezone is 'Mars'; it must be the name of a time zone, such as",
    ),
    ("name: docs", "schedule: nightly", "Setting schedule is 'nightly'; it must be a cron line"),
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
]


@pytest.mark.parametrize(
    ("given", "instead", "said"),
    [*((*case, f"attributes.{where} at ") for *case, where in FIELDS), *VALUES],
)
def test_a_wrong_field_or_value_is_reported_with_its_line(project, given, instead, said):
    error, place = error_of(project, given, instead)

    assert (f"{said}{place}" if said.endswith(" at ") else said) in str(error)
    assert place in str(error)
    assert isinstance(error, ResolutionException) or "nobody" not in instead


def test_a_component_made_in_python_raises_the_errors_themselves(project):
    path = project.write(LINES)
    wrong = {"mine.nothing": UnknownOperatorError, "dedup.Exact": OperatorOptionError}

    for operator, expected in wrong.items():
        node = OperatorDeclaration(name="a", operator=operator, options={"no_option": 1})
        component = OperatorPipelineComponent(source=dg.AssetKey("a"), operators=[node])
        with project.sandbox.build_component_tree() as tree, pytest.raises(expected):
            component.build_defs(tree.load_context.for_path(path.parent))
