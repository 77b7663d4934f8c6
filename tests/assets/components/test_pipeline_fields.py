"""Tests of reading the fields of a defs.yaml."""

import inspect

import dagster as dg
import pytest

from dagster_dataops import (
    ErrorRateCheck,
    OperatorDeclaration,
    OperatorPipelineComponent,
    build_definitions,
)
from dagster_dataops.assets.components.scaffolder import name_of
from dagster_dataops.operators.settings import execution_settings
from tests.assets.component_project import WARNED_OF

pytestmark = WARNED_OF

DAILY = dg.DailyPartitionsDefinition("2026-01-31", timezone="Europe/Paris")
STATIC = dg.StaticPartitionsDefinition(["de", "007"])

NODE = """
source: texts.jsonl
modules: [operators.py]
operators:
  - name: marked
    operator: "{group}.mark"
"""


def options_of(project, written):
    project.write(f"{NODE}    options: {{value: {written}}}\n")
    with project.component() as (component, _):
        return component.operators[0].options["value"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"\n"', "\n"),
        ('"007"', "007"),
        ('"1,2"', "1,2"),
        ('"None"', "None"),
        ('"[]"', "[]"),
        ("7", 7),
        ("[a, {b: 1.5}]", ["a", {"b": 1.5}]),
        ("'{{ 3 * 7 }}'", 21),
        ("['{{ env.A_TEST_OF_THIS }}', plain]", ["from outside", "plain"]),
        ("'{% raw %}{{ name }}{% endraw %}'", "{{ name }}"),
    ],
)
def test_options_keep_their_written_values_and_templates_are_evaluated(
    project, monkeypatch, written, value
):
    monkeypatch.setenv("A_TEST_OF_THIS", "from outside")

    assert options_of(project, written) == value


def test_a_setting_may_be_a_template(project, monkeypatch):
    monkeypatch.setenv("A_TEST_OF_THIS", "3")
    project.write(f"{NODE}    max_workers: '{{{{ env.A_TEST_OF_THIS }}}}'\n")

    with project.component() as (component, _):
        assert component.operators[0].construct().__dataops__.settings.max_workers == 3


def test_the_root_is_taken_from_the_project(project):
    project.write(f"{NODE}resource: {{root: results, max_workers: 2}}\n")

    with project.component() as (component, _):
        root, workers = component.resource.root, component.resource.max_workers

    assert root == str(project.sandbox.project_root / "results")
    assert workers == 2


def test_an_upstream_asset_is_named_by_its_key(project):
    project.write(NODE.replace("texts.jsonl", "{asset: raw/texts}"))

    with project.component() as (component, _):
        assert component.source == dg.AssetKey(["raw", "texts"])


def test_a_retry_policy_has_all_fields_of_dagsters_policy(project):
    policy = "{max_retries: 2, delay: 1, backoff: linear, jitter: full}"
    project.write(f"{NODE}retry_policy: {policy}")

    with project.component() as (component, _):
        assert component.retry_policy == dg.RetryPolicy(
            max_retries=2, delay=1, backoff=dg.Backoff.LINEAR, jitter=dg.Jitter.FULL
        )


def keywords_of(project, attributes, node=""):
    """Return the keywords for `build_definitions` from a defs.yaml; nothing is built."""
    path = project.write(f"{NODE}{node}{attributes}")
    with project.sandbox.build_component_tree() as tree:
        return tree.load_component(path.parent).keywords()


def test_an_empty_defs_yaml_sets_no_keywords(project):
    assert keywords_of(project, "") == {}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{type: daily, start_date: '2026-01-31', timezone: Europe/Paris}", DAILY),
        (
            "{type: static, partition_keys: [de, '007']}",
            dg.StaticPartitionsDefinition(["de", "007"]),
        ),
        ("{type: dynamic, name: files}", dg.DynamicPartitionsDefinition(name="files")),
        ("{type: monthly, start_date: '2026-01-01'}", dg.MonthlyPartitionsDefinition("2026-01-01")),
        (
            "{type: time_window, start_date: '2026-02', fmt: '%Y-%m', cron_schedule: 0 0 1 * *}",
            dg.TimeWindowPartitionsDefinition(
                start="2026-02", fmt="%Y-%m", cron_schedule="0 0 1 * *"
            ),
        ),
    ],
)
def test_partitions_are_those_of_dagster(project, written, expected):
    assert keywords_of(project, f"partitions_def: {written}\n") == {"partitions_def": expected}


def test_an_option_of_a_node_overrides_the_option_of_all_nodes(project):
    second = '  - {name: again, operator: "{group}.mark", pool: slow, max_error_rate: 0.5}\n'
    third = '  - {name: last, operator: "{group}.mark", unpartitioned: true}\n'

    found = keywords_of(project, "pools: api\nmax_error_rate: 0.1\n", second + third)

    assert found == {
        "pools": {"marked": "api", "again": "slow", "last": "api"},
        "max_error_rate": {"marked": 0.1, "again": 0.5, "last": 0.1},
        "unpartitioned": ["last"],
    }


def test_an_option_of_one_node_applies_to_that_node_only(project):
    found = keywords_of(project, "", "    pool: api\n    max_error_rate: 0.5\n")

    assert found == {"pools": {"marked": "api"}, "max_error_rate": {"marked": 0.5}}


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("0.5", 0.5),
        ("'{{ 1 / 4 }}'", 0.25),
        ("{max_error_rate: 0.5}", ErrorRateCheck(0.5)),
        ("{severity: ERROR}", ErrorRateCheck(severity="ERROR")),
        ("{max_error_rate: '{{ 1 / 4 }}', blocking: true}", ErrorRateCheck(0.25, blocking=True)),
        ("unchecked", None),
    ],
)
def test_how_many_records_may_fail_is_a_number_a_check_or_not_looked_at(project, written, rate):
    said = f"max_error_rate: {written}\n"

    assert keywords_of(project, said) == {"max_error_rate": rate}
    assert keywords_of(project, "", f"    {said}") == {"max_error_rate": {"marked": rate}}
    assert keywords_of(project, "max_error_rate: 0.75\n", f"    {said}") == {
        "max_error_rate": {"marked": rate}
    }


def test_a_check_may_contain_templates(project, monkeypatch):
    monkeypatch.setenv("A_TEST_OF_THIS", "3")
    written = """    checks:
      - row_count: {min: '{{ env.A_TEST_OF_THIS }}'}
        name: "{{ 'enough' }}"
        severity: "{{ 'WARN' }}"
        blocking: '{{ False }}'
"""
    (check,) = keywords_of(project, "", written)["checks"]["marked"]

    assert check.description == "There are at least 3 records."
    assert (check.name, check.severity.value, check.blocking) == ("enough", "WARN", False)


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("{type: single_run}", dg.BackfillPolicy.single_run()),
        ("{type: multi_run, max_partitions_per_run: 7}", dg.BackfillPolicy.multi_run(7)),
    ],
)
def test_backfill_policies_are_those_of_dagster(project, written, policy):
    assert keywords_of(project, f"backfill_policy: {written}\n") == {"backfill_policy": policy}


def test_automation_and_freshness_are_templates_as_elsewhere_in_dagster(project):
    found = keywords_of(project, "automation_condition: '{{ dg.AutomationCondition.eager() }}'\n")

    assert found == {"automation_condition": dg.AutomationCondition.eager()}


def test_layout_and_executor_are_handed_on(project):
    found = keywords_of(project, "layout: single_step\nexecutor: multiprocess\n")

    assert found == {"layout": "single_step", "executor": "multiprocess"}


def test_every_python_option_exists_in_yaml():
    """A keyword of `build_definitions` that is missing here needs a field of the component."""
    fields = OperatorPipelineComponent.model().model_fields.keys()
    elsewhere = {
        "ppl": "operators",
        "dagster_dataops_translator": "translation",
        "unpartitioned": "operators",
        "checks": "source_checks",
    }

    keywords = inspect.signature(build_definitions).parameters
    assert {name for name in keywords if elsewhere.get(name, name) not in fields} == set()


def test_an_operator_has_a_field_for_each_setting_that_is_for_yaml():
    node = OperatorPipelineComponent.model().model_json_schema()["$defs"]["OperatorNodeModel"]
    wanted = {name: one.description for name, one in execution_settings().items() if one.yaml}

    found = {name: field["description"] for name, field in node["properties"].items()}
    assert wanted.items() <= found.items()
    assert not (execution_settings().keys() - wanted.keys()) & found.keys()


def test_a_component_in_python_takes_the_options_of_build_definitions(tmp_path):
    component = OperatorPipelineComponent(
        source=tmp_path / "texts.jsonl",
        operators=[OperatorDeclaration(name="unique", operator="dedup.Exact", pool="slow")],
        schedule="@daily",
        layout="single_step",
    )
    assert component.keywords() == {
        "schedule": "@daily",
        "layout": "single_step",
        "pools": {"unique": "slow"},
    }


def test_every_field_has_a_description():
    schema = OperatorPipelineComponent.model().model_json_schema()
    node = schema["$defs"]["OperatorNodeModel"]
    shown = {**schema["properties"], **node["properties"]}

    undocumented = {name for name, field in shown.items() if not field.get("description")}
    assert undocumented == {"translation"}  # Dagster's own


@pytest.mark.parametrize(
    ("folder", "name"), [("docs", "docs"), ("my-docs", "my_docs"), ("01-docs", "pipeline_01_docs")]
)
def test_a_pipeline_is_named_by_its_folder(tmp_path, folder, name):
    assert name_of(tmp_path / folder) == name


@pytest.mark.parametrize(("workers", "allowed"), [(0, True), (3, True), (-1, False)])
def test_workers_may_be_left_to_the_default_by_a_zero(workers, allowed):
    node = OperatorPipelineComponent.model().model_json_schema()["$defs"]["OperatorNodeModel"]

    assert (workers >= node["properties"]["max_workers"]["minimum"]) is allowed


def test_an_output_is_taken_from_the_folder_of_the_project(project):
    project.write(f"{NODE}    output: exports\n")

    with project.component() as (component, _):
        output = component.operators[0].construct().__dataops__.output
        assert output == project.sandbox.project_root / "exports"
