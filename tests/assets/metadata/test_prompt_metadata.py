"""Tests of dagster_dataops.assets.metadata.prompt_metadata, and of the estimate of a preview."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    LLMDataJson,
    LLMOperator,
    ModelClient,
    Price,
    build_definitions,
    pipeline,
)
from dagster_dataops.assets.metadata.prompt_metadata import prompt_metadata
from dagster_dataops.datasets.dataset import JsonlDataset
from tests.assets.helpers import write_jsonl
from tests.registries import OperatorRegistry

CLIENT = ModelClient(complete=lambda prompt: prompt.upper(), prices={"m": Price(1.0, 4.0)})


class Topic(LLMOperator):
    """Names a topic."""

    system = "Be brief."
    prompt = "Topic of ```{{ text }}```?"


class Hooks(LLMDataJson):
    """Asks as LazyLLM does."""

    _default_prompt = "Grade {content}"

    def preprocess(self, data: dict[str, Any]) -> Any:
        return {"content": data["text"]}, {"temperature": 0}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", [{"text": f"t{n}"} for n in range(40)])


def prompt_of(operator: Any, path: Path) -> str:
    found = prompt_metadata(operator, [JsonlDataset.of_file(path)], "p/prompt")
    return str(found["p/prompt"].value) if found else ""


def test_the_messages_of_the_first_record_are_shown(registry: OperatorRegistry, source: Path):
    register: Any = registry("data.demo")

    shown = prompt_of(register(Topic)(model="m"), source)

    assert shown == (
        "**system**\n\n```text\nBe brief.\n```\n\n**user**\n\n````text\nTopic of ```t0```?\n````"
    )
    assert "Grade t0" in prompt_of(register(Hooks)(), source)


def test_without_a_prompt_nothing_is_shown(
    registry: OperatorRegistry, source: Path, tmp_path: Path
):
    operator: Any = registry("data.demo")(Topic)
    empty = write_jsonl(tmp_path / "empty.jsonl", [])

    assert prompt_of(operator(prompt="{{ other }}"), source) == ""
    assert prompt_of(operator(), empty) == ""


def test_the_page_shows_the_prompt_and_a_preview_begins_with_the_estimate(
    registry: OperatorRegistry, source: Path, tmp_path: Path
):
    operator: Any = registry("data.demo")(Topic)
    with pipeline("docs") as ppl:
        ppl.topic = operator(model="m", max_tokens=10, client=CLIENT)
    definitions = build_definitions(
        ppl,
        source=str(source),
        resource=DataOpsResource(root=str(tmp_path / "root")),
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        config = {"ops": {"docs__topic": {"config": {"limit": 2}}}}
        preview = job.execute_in_process(instance=instance, run_config=config)
        (observed,) = [
            event.asset_observation_data.asset_observation
            for event in preview.all_events
            if event.event_type_value == "ASSET_OBSERVATION"
        ]
        result = job.execute_in_process(instance=instance)
    (made,) = [
        one
        for one in result.get_asset_materialization_events()
        if one.asset_key is not None and one.asset_key.path[-1] == "topic"
    ]

    assert list(observed.metadata)[:2] == ["preview/estimate", "preview/prompt"]
    assert str(observed.metadata["preview/estimate"].value).startswith(
        "all records of the input: 40 calls, $"
    )
    assert "Topic of" in str(observed.metadata["preview/prompt"].value)
    assert "Topic of" in str(made.materialization.metadata["dagster_dataops/prompt"].value)
