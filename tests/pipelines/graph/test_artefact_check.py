"""Tests of dagster_dataops.pipelines.graph.artefact_check."""

import pytest

from dagster_dataops import data_register, pipeline
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.options.artefact_options import ArtefactReference
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import OperatorNode

group = data_register.new_group("artefact_check_tests")


class Index(group):
    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    def build(self, records, folder):
        (folder / "count").write_text(str(sum(1 for _ in records)))


class Search(group):
    def __init__(self, index, **kwargs):
        super().__init__(**kwargs)
        self.index = index

    def forward(self, record):
        return record


def graph_of(*nodes: OperatorNode) -> OperatorGraph:
    return OperatorGraph.of("docs", nodes)


def node(name: str, operator, *inputs: str) -> OperatorNode:
    return OperatorNode(name, operator, inputs or ("source",))


def search(index: str = "index"):
    return Search(index=ArtefactReference(index))


def refused(*nodes: OperatorNode) -> str:
    with pytest.raises(PipelineDefinitionError) as caught:
        graph_of(*nodes)
    return caught.value.reason


def test_a_node_comes_after_the_artefacts_in_its_options() -> None:
    graph = graph_of(node("search", search()), node("index", Index()))
    assert [each.name for each in graph.ordered()] == ["index", "search"]
    assert graph.nodes["search"].artefacts == ("index",)


def test_an_artefact_as_input_is_refused() -> None:
    reason = refused(node("index", Index()), node("search", search(), "index"))
    assert "node 'search' takes its input from 'index', which is an artefact" in reason
    assert "index=ppl.index" in reason


def test_a_node_with_records_as_an_option_is_refused() -> None:
    class Plain(group):
        def forward(self, record):
            return record

    reason = refused(node("plain", Plain()), node("search", search("plain")))
    assert "node 'search' names 'plain' in option 'index', which is a record operator" in reason
    assert "`inputs`" in reason


@pytest.mark.parametrize(
    ("name", "hint"), [("indices", "did you mean 'index'?"), ("xyz", "artefacts: index")]
)
def test_an_unknown_node_in_an_option_is_refused(name: str, hint: str) -> None:
    reason = refused(node("index", Index()), node("search", search(name)))
    assert reason == (
        f"node 'search' names {name!r} in option 'index', which is not a node of the pipeline; "
        f"{hint}"
    )


def test_the_source_as_an_option_is_refused() -> None:
    expected = pytest.raises(PipelineDefinitionError, match="which is the input of the pipeline")
    with expected, pipeline() as ppl:
        ppl.search = Search(index=ppl.source)


def test_a_reference_outside_its_pipeline_is_refused() -> None:
    with pipeline() as ppl:
        ppl.index = Index()
    with pytest.raises(PipelineDefinitionError, match="it has no artefacts"):
        Search(index=ppl.index)([{}])


def test_a_cycle_through_an_option_is_refused() -> None:
    reason = refused(
        node("search", search()),
        node("index", Index(), "search"),
    )
    assert "cycle" in reason
    reason = refused(node("index", Index(base=ArtefactReference("index"))))
    assert "cycle" in reason
