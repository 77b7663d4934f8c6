"""Tests of reading the fields of a defs.yaml."""

import dagster as dg
import pytest

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


def test_settings_of_the_resource_are_fields(project):
    fields = "{root: results, max_workers: 2, result_format: jsonl.zst}"
    project.write(f"{NODE}resource: {fields}\n")

    with project.component() as (component, _):
        made = component.resource

    assert made.root == str(project.sandbox.project_root / "results")
    assert (made.max_workers, made.result_format) == (2, "jsonl.zst")


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


EAGER = dg.AutomationCondition.eager()
AGAIN = '  - {name: again, operator: "{group}.mark", pool: slow, max_error_rate: 0.5}\n'
LAST = '  - {name: last, operator: "{group}.mark", unpartitioned: true}\n'
WHOLE = "{cron: '0 2 * * *', timezone: Europe/Berlin, running: true, tags: {a: b}}"
DEPLOYED = """
jobs: [pipeline, retry]
job_tags: {team: search}
job_owners: ["team:search"]
resource_key: scratch
op_tags: {marked: {queue: slow, size: 2}, source: {queue: io}}
"""
K8S = {"dagster-k8s/config": {"container_config": {"a": 1}}}
KEYWORDS = [
    ("", "", {}),
    ("report: true\n", "", {"report": True}),
    (
        "pools: api\nmax_error_rate: 0.1\n",
        AGAIN + LAST,
        {
            "pools": {"marked": "api", "again": "slow", "last": "api"},
            "max_error_rate": {"marked": 0.1, "again": 0.5, "last": 0.1},
            "unpartitioned": ["last"],
        },
    ),
    (
        "",
        "    pool: api\n    max_error_rate: 0.5\n",
        {"pools": {"marked": "api"}, "max_error_rate": {"marked": 0.5}},
    ),
    (
        "automation_condition: '{{ dg.AutomationCondition.eager() }}'\n",
        "",
        {"automation_condition": EAGER},
    ),
    (
        "layout: single_step\nexecutor: multiprocess\n",
        "",
        {"layout": "single_step", "executor": "multiprocess"},
    ),
    ("schedule: '0 2 * * *'\n", "", {"schedule": PipelineSchedule(cron="0 2 * * *")}),
    (
        f"schedule: {WHOLE}\n",
        "",
        {
            "schedule": PipelineSchedule(
                cron="0 2 * * *", timezone="Europe/Berlin", running=True, tags={"a": "b"}
            )
        },
    ),
    (
        DEPLOYED,
        "    op_tags: {queue: gpu, dagster-k8s/config: {container_config: {a: 1}}}\n",
        {
            "jobs": ["pipeline", "retry"],
            "job_tags": {"team": "search"},
            "job_owners": ["team:search"],
            "resource_key": "scratch",
            "op_tags": {
                "marked": {"queue": "gpu", "size": 2, **K8S},
                "source": {"queue": "io"},
            },
        },
    ),
]


@pytest.mark.parametrize(("fields", "node", "keywords"), KEYWORDS)
def test_fields_are_the_keywords_of_build_definitions(project, fields, node, keywords):
    assert keywords_of(project, fields, node) == keywords


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
