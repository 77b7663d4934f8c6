"""Tests of how the fields of a defs.yaml are read."""

import dagster as dg
import pytest

from dagster_dataops import OperatorPipelineComponent
from dagster_dataops.assets.scaffolding import name_of
from tests.assets.component_project import WARNED_OF

pytestmark = WARNED_OF

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
def test_an_option_is_what_is_written_and_a_template_what_it_gives(
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


def test_a_retry_policy_has_all_that_dagsters_has(project):
    policy = "{max_retries: 2, delay: 1, backoff: linear, jitter: full}"
    project.write(f"{NODE}retry_policy: {policy}")

    with project.component() as (component, _):
        assert component.retry_policy == dg.RetryPolicy(
            max_retries=2, delay=1, backoff=dg.Backoff.LINEAR, jitter=dg.Jitter.FULL
        )


def test_every_field_tells_what_it_is():
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
