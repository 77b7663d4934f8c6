"""Tests of dagster_dataops.graph.crude_check."""

import pytest

from dagster_dataops import cook, data, pipeline
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.crude_check import check_crude


class Source:
    """A source with one dataset."""

    is_crude = True
    sources = ()


def graph_of(*nodes):
    with pipeline("p") as ppl:
        for number, node in enumerate(nodes):
            setattr(ppl, f"n{number}", node)
    return ppl.graph


def test_only_nodes_that_take_a_crude_source_must_cook():
    unique = data.dedup.Exact(input_key="text")
    check_crude(graph_of(cook(dict), unique), Source())
    check_crude(graph_of(unique), object())
    with pytest.raises(PipelineDefinitionError, match="node 'n0' takes the source, which is crude"):
        check_crude(graph_of(unique, cook(dict)), Source())
