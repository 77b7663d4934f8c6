"""Tests of concurrency pools: named by node, and respected by a real instance."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import Records, asset_of, definitions_of, pipeline_of


def test_a_pool_belongs_only_to_its_node(upper: Any, records: Records, root: Path) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = definitions_of(ppl, records(1), root, pools={"second": "llm"})
    assert asset_of(definitions, "docs", "second").op.pool == "llm"
    assert asset_of(definitions, "docs", "first").op.pool is None


def test_one_step_is_in_the_one_pool_that_is_named(
    upper: Any, records: Records, root: Path
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    pools = {"second": "llm"}
    definitions = definitions_of(ppl, records(1), root, pools=pools, layout="single_step")
    assert asset_of(definitions, "docs", "first").op.pool == "llm"


def test_one_step_cannot_be_in_two_pools(upper: Any, records: Records, root: Path) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    pools = {"first": "disk", "second": "llm"}
    with pytest.raises(PipelineDefinitionError, match="in the pools disk, llm"):
        definitions_of(ppl, records(1), root, pools=pools, layout="single_step")


def test_a_pool_for_no_node_is_refused_with_the_nearest_name(
    upper: Any, records: Records, root: Path
) -> None:
    with pytest.raises(
        PipelineDefinitionError, match="'seconds', which is not a node; did you mean 's"
    ):
        definitions_of(pipeline_of(second=upper()), records(1), root, pools={"seconds": "llm"})
