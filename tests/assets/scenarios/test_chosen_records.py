"""Tests of the launchpad: records chosen by a condition, and a try of the present code."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from tests.assets.helpers import (
    definitions_of,
    execute,
    pipeline_of,
    read_jsonl,
    result_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry

pytestmark = pytest.mark.slow


@pytest.fixture
def answers(registry: OperatorRegistry) -> tuple[Any, list[int], dict[str, Any]]:
    """Return an operator that drops a third of the records, its calls, and its state."""
    calls: list[int] = []
    state: dict[str, Any] = {"drops": True, "word": "old"}

    @registry("data.text", _concurrency_mode="single")
    def answer(record: dict) -> Any:
        calls.append(record["id"])
        if state["drops"] and record["id"] % 3 == 0:
            return []
        return record | {"word": state["word"]}

    return answer, calls, state


def launched(config: dict[str, Any], definitions: dg.Definitions, instance: Any) -> Any:
    return execute(definitions, instance, {"ops": {"docs__answer": {"config": config}}})


def test_the_launchpad_redoes_the_records_that_fulfil_a_condition(
    answers: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    operator, calls, state = answers
    source = write_jsonl(tmp_path / "texts.jsonl", [{"id": n} for n in range(12)])
    definitions = definitions_of(pipeline_of(answer=operator()), source, tmp_path)
    execute(definitions, instance)
    calls.clear()
    state.update(drops=False, word="new")

    launched({"resume": {"records": "dropped and id > 3"}}, definitions, instance)

    assert calls == [6, 9]
    words = {record["id"]: record["word"] for record in result_of(tmp_path, "docs", "answer")}
    assert words == {n: "new" if n in {6, 9} else "old" for n in range(12) if n not in {0, 3}}

    with pytest.raises(Exception, match="names 'idd', which no record"):
        launched({"resume": {"records": "idd > 3"}}, definitions, instance)
    assert calls == [6, 9]


def test_the_launchpad_tries_the_present_code_and_materializes_nothing(
    answers: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    operator, calls, state = answers
    source = write_jsonl(tmp_path / "texts.jsonl", [{"id": n} for n in range(30)])
    definitions = definitions_of(pipeline_of(answer=operator()), source, tmp_path)
    execute(definitions, instance)
    before = read_jsonl(tmp_path / "docs" / "answer" / "answer_results.jsonl")
    calls.clear()
    state.update(drops=False)

    result = launched({"try": 15}, definitions, instance)

    assert len(calls) == 15
    assert not result.get_asset_materialization_events()
    assert read_jsonl(tmp_path / "docs" / "answer" / "answer_results.jsonl") == before
    (observed,) = (
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
        if "dagster_dataops/tried" in event.asset_observation_data.asset_observation.metadata
    )
    shown = observed.metadata["dagster_dataops/tried"].value
    assert "new, was dropped" in shown
    assert 'redo some:   resume: {records: "dropped"}' in shown
