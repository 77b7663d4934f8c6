"""Tests of dagster_dataops.assets.metadata.record_counts."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    OperatorContext,
    build_definitions,
    data_register,
    pipeline,
)
from dagster_dataops.models.replies.latency import latency_count
from tests.assets.helpers import write_jsonl

data_register.new_group("counted")


@data_register("data.counted", _concurrency_mode="single")
def long_enough(record: dict[str, Any], context: OperatorContext) -> Any:
    context.count(words=len(record["text"].split()), cost=0.25)
    context.count(**{f"first_letter/{record['text'][0]}": 1, latency_count(2.0): 1})
    return record if len(record["text"]) > 3 else context.drop("too_short")


def test_sums_and_drops_are_metadata_of_the_asset(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "a b c"}, {"text": "b"}])
    with pipeline("counted") as ppl:
        ppl.long = long_enough()
    defs = build_definitions(
        ppl, source=str(source), resource=DataOpsResource(root=str(tmp_path / "root"))
    )
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance)
    made = result.asset_materializations_for_node("counted__long")[-1]
    metadata = made.metadata
    assert metadata["dagster_dataops/counted_words"].value == 5
    assert metadata["dagster_dataops/cost"].value == 0.75
    assert "| a | 2 |\n| b | 1 |" in str(metadata["dagster_dataops/first_letter"].value)
    assert metadata["dagster_dataops/latency_p95"].value == pytest.approx(2.0, rel=0.06)
    assert not [name for name in metadata if "counted_first" in name or "counted_lat" in name]
    drops = str(metadata["dagster_dataops/drops"].value)
    assert "too\\_short | 2 | 66.7 %" in drops
    examples = str(metadata["dagster_dataops/drop_examples"].value)
    assert 'too\\_short | 1 | {"text":"a"}' in examples
    assert 'too\\_short | 3 | {"text":"b"}' in examples
