"""Tests of dagster_dataops.assets.automation.estimate_job."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    LLMOperator,
    LLMResource,
    Price,
    build_definitions,
    pipeline,
)
from tests.assets.helpers import write_jsonl
from tests.registries import OperatorRegistry

CLIENT = LLMResource(base_url="http://nowhere.invalid", prices={"rule": Price(1.0, 4.0)})


@pytest.fixture
def topic(registry: OperatorRegistry) -> Any:
    class Topic(LLMOperator):
        prompt = "Which topic has this: {{ text }}"

    return registry("data.demo")(Topic)


def definitions_of(operator: Any, source: Any, root: Path, **options: Any) -> dg.Definitions:
    with pipeline("cards") as ppl:
        ppl.topic = operator
    return build_definitions(
        ppl,
        source=source,
        resource=DataOpsResource(root=str(root)),
        clients={"default": CLIENT},
        jobs=["pipeline", "estimate"],
        **options,
    )


def estimate_in(definitions: dg.Definitions, instance: dg.DagsterInstance, **config: Any) -> Any:
    """Return the metadata of the estimate, by key."""
    job = definitions.resolve_job_def("cards_estimate")
    given = {"ops": {"estimate_cards": {"config": config}}}
    done = job.execute_in_process(instance=instance, run_config=given)
    assert done.success
    assert not done.get_asset_materialization_events()
    (event,) = done.get_asset_observation_events()
    observed = event.event_specific_data.asset_observation
    return {name: one.value for name, one in observed.metadata.items()}


def test_the_job_shows_calls_and_cost_without_a_call(
    topic: Any, tmp_path: Path, instance: dg.DagsterInstance
):
    records = [{"text": f"{number:04} words words words"} for number in range(1000)]
    source = write_jsonl(tmp_path / "in.jsonl", records)
    operator = topic(model="rule", max_tokens=100)
    definitions = definitions_of(operator, str(source), tmp_path / "root")

    shown = estimate_in(definitions, instance, sample=50)

    assert shown["estimate/calls"] == 1000
    most = (1000 * 13 + 4 * 1000 * 100) / 1e6
    assert shown["estimate/cost_at_most"] == pytest.approx(most, rel=0.01)
    assert shown["estimate/cost"] < shown["estimate/cost_at_most"]
    assert not list((tmp_path / "root").rglob("*_results.jsonl"))


def test_a_source_function_is_estimated_from_what_it_yields(
    topic: Any, tmp_path: Path, instance: dg.DagsterInstance
):
    def cards() -> Iterator[dict[str, Any]]:
        yield from ({"text": f"card {number}"} for number in range(30))

    shown = estimate_in(definitions_of(topic(model="rule"), cards, tmp_path), instance)

    assert shown["estimate/calls"] == 30


def test_a_partition_can_be_chosen(topic: Any, tmp_path: Path, instance: dg.DagsterInstance):
    for name, number in (("a", 3), ("b", 5)):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": f"x {at}"} for at in range(number)])
    definitions = definitions_of(
        topic(model="rule"),
        str(tmp_path / "{partition}.jsonl"),
        tmp_path / "root",
        partitions_def=dg.StaticPartitionsDefinition(["a", "b"]),
    )

    assert estimate_in(definitions, instance)["estimate/calls"] == 5
    assert estimate_in(definitions, instance, partition="a")["estimate/calls"] == 3


def test_a_pipeline_without_models_has_no_such_job(registry: OperatorRegistry, tmp_path: Path):
    @registry("data.demo")
    def keep(record: dict[str, Any]) -> dict[str, Any]:
        return record

    definitions = definitions_of(keep(), "in.jsonl", tmp_path)

    assert "cards_estimate" not in {job.name for job in definitions.resolve_all_job_defs()}
