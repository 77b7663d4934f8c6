"""Tests of dagster_dataops.pipelines.graph."""

import os
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode
from tests.registries import OperatorRegistry

REGISTRY = OperatorRegistry(lambda operator, data: data)


@REGISTRY("data.graph")
def step(data: dict):
    return data


@REGISTRY("data.graph", rewrite_func="forward_batch_input")
def join(left: list[dict], right: list[dict]):
    return [*left, *right]


def node(name: str, *inputs: str, operator=step) -> OperatorNode:
    return OperatorNode(name, operator(), inputs or (SOURCE,))


def names(graph: OperatorGraph) -> list[str]:
    return [each.name for each in graph.ordered()]


def test_nodes_keep_their_order_and_may_name_one_that_is_added_later():
    graph = OperatorGraph.of("docs", [node("b"), node("a", "b", "c"), node("c", "b")])

    assert list(graph.nodes) == ["b", "a", "c"]
    assert graph.nodes["a"].inputs == ("b", "c")
    assert names(graph) == ["b", "c", "a"]


@given(st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=8), st.randoms())
def test_every_node_comes_after_its_inputs(wishes, random):
    nodes = []
    for number, wish in enumerate(wishes):
        inputs = [f"n{other}" for other in sorted(wish) if other < number]
        nodes.append(node(f"n{number}", *inputs))
    random.shuffle(nodes)

    graph = OperatorGraph.of("docs", nodes)

    seen = {SOURCE}
    for each in graph.ordered():
        assert seen.issuperset(each.inputs)
        seen.add(each.name)
    assert len(seen) == len(nodes) + 1
    assert names(graph) == names(OperatorGraph.of("docs", nodes))


REFUSED = {
    r"'docs': two nodes are called 'a'": [["a"], ["a"]],
    r"which is not a node\. Nodes: upper, suffix": [["upper"], ["suffix", "zzzz"]],
    r"node 'suffix' takes its input from 'uppr'.*did you mean 'upper'\?": [
        ["upper"],
        ["suffix", "uppr"],
    ],
    "cycle: a -> a": [["a", "a"]],
    "cycle: (?=.*a)(?=.*b)(?=.*c).* -> ": [["a", "c"], ["b", "a"], ["c", "b"]],
    "no nodes": [],
    "'checkpoints' cannot name a folder": [["checkpoints"]],
}


@pytest.mark.parametrize(("reason", "nodes"), REFUSED.items(), ids=REFUSED)
def test_nodes_that_make_no_graph_are_refused_with_the_reason(reason, nodes):
    with pytest.raises(PipelineDefinitionError, match=reason):
        OperatorGraph.of("docs", [node(*one) for one in nodes])


def test_a_joining_operator_needs_as_many_inputs_as_it_takes():
    fitting = OperatorGraph.of("docs", [node("a"), node("b", "a", SOURCE, operator=join)])
    assert fitting.nodes["b"].inputs == ("a", SOURCE)

    with pytest.raises(PipelineDefinitionError, match=r"graph\.join takes 2 datasets.*are source"):
        OperatorGraph.of("docs", [node("a", operator=join)])


def test_a_graph_cannot_be_changed():
    nodes = [node("a")]
    graph = OperatorGraph.of("docs", nodes)
    nodes.append(node("b"))

    assert list(graph.nodes) == ["a"]
    with pytest.raises(FrozenInstanceError):
        graph.name = "other"
    with pytest.raises(TypeError):
        graph.nodes["b"] = node("b")


_CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("/\0.\udcff")


@given(st.text(_CHARACTERS, max_size=6) | st.sampled_from(["..", "CON", "n" * 200, "é" * 100]))
def test_a_node_name_must_be_a_valid_folder_name(name):
    try:
        OperatorGraph.of("docs", [node(name)])
        OperatorGraph.of(name, [node("docs")])
    except PipelineDefinitionError:
        return
    else:
        path = Path("/root") / "docs" / name
        assert path.parent == Path("/root/docs")
        assert path.name == name
        assert not name.startswith(".")
        assert "\0" not in name
        assert len(os.fsencode(f".{name}_results.jsonl.json.draft.draft")) < 256
