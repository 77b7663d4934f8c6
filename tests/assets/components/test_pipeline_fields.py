"""Tests of reading the fields of a defs.yaml."""

import dagster as dg

from dagster_dataops import (
    LLMResource,
    OperatorDeclaration,
    OperatorPipelineComponent,
    PipelineSchedule,
    RayCluster,
)
from tests.assets.component_project import WARNED_OF
from tests.assets.components.declared import NODE, keywords_of

pytestmark = WARNED_OF

STATIC = dg.StaticPartitionsDefinition(["de", "007"])


def test_the_root_is_taken_from_the_project(project):
    project.write(f"{NODE}resource: {{root: results, max_workers: 2}}\n")

    with project.component() as (component, _):
        root, workers = component.resource.root, component.resource.max_workers

    assert root == str(project.sandbox.project_root / "results")
    assert workers == 2


def test_the_form_of_results_is_a_field(project):
    project.write(f"{NODE}resource: {{result_format: jsonl.zst}}\n")

    with project.component() as (component, _):
        assert component.resource.result_format == "jsonl.zst"


def test_a_cluster_and_the_share_of_each_agent_are_fields(project):
    fields = "{address: 'ray://head:10001', agents: 3, cpus_per_agent: 8}"
    node = f"{NODE}    concurrency_mode: process\n    agents: {{num_gpus: 1}}\n"
    project.write(f"{node}resource: {{cluster: {fields}}}\n")

    with project.component() as (component, _):
        assert component.resource.cluster == RayCluster("ray://head:10001", 3, 8)
        (declared,) = component.operators
        assert declared.construct().__dataops__.resolved.agents == {"num_gpus": 1}


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


def test_an_empty_defs_yaml_sets_no_keywords(project):
    assert keywords_of(project, "") == {}


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


def test_automation_and_freshness_are_templates_as_elsewhere_in_dagster(project):
    found = keywords_of(project, "automation_condition: '{{ dg.AutomationCondition.eager() }}'\n")

    assert found == {"automation_condition": dg.AutomationCondition.eager()}


def test_layout_and_executor_are_handed_on(project):
    found = keywords_of(project, "layout: single_step\nexecutor: multiprocess\n")

    assert found == {"layout": "single_step", "executor": "multiprocess"}


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


def test_a_schedule_is_a_cron_line_or_an_object(project):
    line = keywords_of(project, "schedule: '0 2 * * *'\n")["schedule"]
    fields = "{cron: '0 2 * * *', timezone: Europe/Berlin, running: true, tags: {a: b}}"
    whole = keywords_of(project, f"schedule: {fields}\n")["schedule"]

    assert line == PipelineSchedule(cron="0 2 * * *")
    assert whole == PipelineSchedule(
        cron="0 2 * * *", timezone="Europe/Berlin", running=True, tags={"a": "b"}
    )


def test_what_a_deployment_sets_has_fields(project):
    fields = """
jobs: [pipeline, retry]
job_tags: {team: search}
job_owners: ["team:search"]
resource_key: scratch
op_tags: {marked: {queue: slow, size: 2}, source: {queue: io}}
"""
    node = "    op_tags: {queue: gpu, dagster-k8s/config: {container_config: {a: 1}}}\n"

    found = keywords_of(project, fields, node)

    assert found == {
        "jobs": ["pipeline", "retry"],
        "job_tags": {"team": "search"},
        "job_owners": ["team:search"],
        "resource_key": "scratch",
        "op_tags": {
            "marked": {
                "queue": "gpu",
                "size": 2,
                "dagster-k8s/config": {"container_config": {"a": 1}},
            },
            "source": {"queue": "io"},
        },
    }


def test_a_report_is_asked_for_by_one_word(project):
    assert keywords_of(project, "report: true\n") == {"report": True}


CLIENTS = """
clients:
  default:
    base_url: http://localhost:8000/v1
    api_key: {env: A_KEY}
    requests_per_minute: 60
    prices: {small: {input: 0.25, output: 2}}
"""
LABELS = """
  - name: label
    operator: llm.Classify
    options: {labels: [travel, food], input_key: text, model: small}
"""


def test_operators_of_models_and_their_clients_have_a_form_in_yaml(project, monkeypatch):
    monkeypatch.setenv("A_KEY", "secret")
    project.write(NODE + LABELS + CLIENTS)

    with project.component() as (component, definitions):
        client = component.clients["default"]

    assert isinstance(client, LLMResource)
    assert client.base_url == "http://localhost:8000/v1"
    assert isinstance(client.api_key, dg.EnvVar)
    assert client.requests_per_minute == 60
    assert client.prices == {"small": {"input": 0.25, "output": 2.0}}
    keys = {key.path[-1] for key in definitions.resolve_all_asset_keys()}
    assert {"marked", "label"} <= keys
