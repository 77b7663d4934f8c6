"""A selection operator as an asset."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg

from dagster_dataops import data
from tests.assets.helpers import (
    definitions_of,
    execute,
    metadata_of,
    pipeline_of,
    result_of,
)


def test_an_asset_of_a_selection_operator_works_as_any_other(
    tmp_path: Path, records: Callable[[int], Path], instance: dg.DagsterInstance
) -> None:
    source = records(20)
    source.write_bytes(source.read_bytes() * 2 + b"bad\n")
    ppl = pipeline_of(
        exact=data.dedup.Exact(), near=data.dedup.NearDuplicate(ngram_size=1, max_memory_mb=1)
    )
    definitions = definitions_of(ppl, source, tmp_path)
    options = {"config": {"params": {"max_memory_mb": 3}}}
    result = execute(definitions, instance, {"ops": {"docs__exact": options}})
    assert result.success
    assert [row["id"] for row in result_of(tmp_path, "docs", "exact")] == list(range(20))
    metadata = metadata_of(result, "docs", "exact")
    assert (metadata["rows_failed"], metadata["rows_dropped"]) == (1, 20)
    assert len(result_of(tmp_path, "docs", "near")) == 20
