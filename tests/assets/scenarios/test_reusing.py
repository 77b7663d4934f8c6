"""Tests that operators with reused outcomes are not called again for unchanged records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import build_definitions, load_result
from tests.assets.helpers import (
    JOB_KINDS,
    Records,
    execute,
    log_of,
    metadata_of,
    pipeline_of,
    resource_at,
)
from tests.registries import OperatorRegistry

Model = Any  # an operator that counts its calls
COUNT = 60


@pytest.fixture
def asked() -> list[int]:
    return []


@pytest.fixture
def pipeline(registry: OperatorRegistry, asked: list[int]) -> Callable[..., Any]:
    """Return a pipeline of a cleaner, a model call, and a later node."""

    @registry("data.reuse", _concurrency_mode="thread", _max_workers=4)
    def clean(record: dict, every: int = 0, failing: int = 0) -> None:
        if failing and record["id"] % failing == 1:
            msg = "not now"
            raise TimeoutError(msg)
        if every and record["id"] % every == 0:
            record["text"] = "mended"

    @registry("data.reuse", _concurrency_mode="thread", _max_workers=4, _reuse_outcomes=True)
    def model(record: dict) -> None:
        asked.append(record["id"])
        record["answer"] = f"{record['text']}?"

    def make(**options: Any) -> Any:
        return pipeline_of(clean=clean(**options), model=model())

    return make


def definitions(ppl: Any, source: Path, root: Path, **keywords: Any) -> dg.Definitions:
    return build_definitions(
        ppl, source=source, resource=resource_at(root), jobs=JOB_KINDS, **keywords
    )


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_after_a_fix_upstream_a_model_is_called_only_for_changed_records(
    layout: str,
    pipeline: Callable[..., Any],
    asked: list[int],
    records: Records,
    root: Path,
    stored: dg.DagsterInstance,
) -> None:
    source = records(COUNT)
    first = execute(definitions(pipeline(), source, root, layout=layout), stored)
    assert sorted(asked) == list(range(COUNT))
    asked.clear()

    second = execute(definitions(pipeline(every=20), source, root, layout=layout), stored)

    assert sorted(asked) == [0, 20, 40]
    answers = [record["answer"] for record in load_result(root / "docs" / "model")]
    assert [n for n, answer in enumerate(answers) if answer == "mended?"] == [0, 20, 40]
    metadata = metadata_of(second, "docs", "model")
    assert metadata["rows_resumed"] == COUNT - 3
    assert metadata["resumed_from"] == first.run_id
    told = f"{COUNT - 3} of {COUNT} records unchanged since run {first.run_id}"
    assert any(told in text for text in log_of(stored, second.run_id))


@pytest.mark.slow
def test_a_plain_materialize_resumes_by_default_and_never_on_request(
    pipeline: Callable[..., Any],
    asked: list[int],
    records: Records,
    root: Path,
    stored: dg.DagsterInstance,
) -> None:
    made = definitions(pipeline(), records(COUNT), root)
    execute(made, stored)
    asked.clear()
    execute(made, stored)
    assert asked == []
    anew = {"ops": {"docs__model": {"config": {"resume": "never"}}}}
    execute(made, stored, anew)
    assert sorted(asked) == list(range(COUNT))


@pytest.mark.slow
def test_the_retry_job_calls_a_model_for_records_missing_upstream(
    pipeline: Callable[..., Any],
    asked: list[int],
    records: Records,
    root: Path,
    stored: dg.DagsterInstance,
) -> None:
    source = records(COUNT)
    execute(definitions(pipeline(failing=10), source, root), stored)
    assert len(asked) == COUNT - COUNT // 10
    asked.clear()

    healed = definitions(pipeline(), source, root)
    healed.resolve_job_def("docs_retry_failed_records").execute_in_process(instance=stored)

    assert sorted(asked) == list(range(1, COUNT, 10))
    numbers = [record["id"] for record in load_result(root / "docs" / "model")]
    assert numbers == list(range(COUNT))
