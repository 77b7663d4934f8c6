"""Exchange nodes of an `OperatorGraph`: each function returns a new graph, checked as a whole."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode


def find_nodes(graph: OperatorGraph, wanted: str | Callable[[Any], bool]) -> list[OperatorNode]:
    """Return the nodes of a name, of an operator's name or class, or by a function."""
    if isinstance(wanted, type):
        return [node for node in graph.ordered() if isinstance(node.operator, wanted)]
    if callable(wanted):
        return [node for node in graph.ordered() if wanted(node)]
    return [
        node
        for node in graph.ordered()
        if wanted in {node.name, node.operator.__dataops__.spec.qualified_name}
    ]


def replace_node(graph: OperatorGraph, name: str, new: object) -> OperatorGraph:
    """Return the graph with another operator in a node; its name and its inputs stay."""
    old = _known(graph, name)
    changed_node = replace(old, operator=_operator(graph, new))
    return _rebuilt(graph, {name: [changed_node]})


def insert_node(graph: OperatorGraph, after: str, new: object, name: str | None) -> OperatorGraph:
    """Return the graph with a new node between the result ``after`` and all that read it."""
    if name is None:
        reason = "the new node has no name; give graphs.insert(..., name=...)"
        raise PipelineDefinitionError(graph.name, reason)
    if name in graph.nodes:
        raise PipelineDefinitionError(graph.name, f"two nodes are called {name!r}")
    inserted = OperatorNode(name, _operator(graph, new), (after,))
    result = inserted.results[0] if len(inserted.results) == 1 else name
    readers = {
        node.name: [_reading(node, {after: result})]
        for node in graph.nodes.values()
        if after in node.inputs
    }
    if after == SOURCE:
        first = next(iter(graph.nodes))
        return _rebuilt(
            graph, {**readers, first: [inserted, *readers.get(first, [graph.nodes[first]])]}
        )
    before = _known(graph, after.partition(".")[0])
    return _rebuilt(graph, {**readers, before.name: [before, inserted]})


def remove_node(graph: OperatorGraph, name: str) -> OperatorGraph:
    """Return the graph without a node; the nodes that read its results read its input."""
    old = _known(graph, name)
    if len(old.inputs) != 1:
        reason = (
            f"node {name!r} cannot be removed: it has the inputs {', '.join(old.inputs)}, and only "
            "one of them could take its place; use graphs.replace"
        )
        raise PipelineDefinitionError(graph.name, reason)
    instead = dict.fromkeys(old.results, old.inputs[0])
    readers = {node.name: [_reading(node, instead)] for node in graph.nodes.values()}
    return _rebuilt(graph, {**readers, name: []})


def _rebuilt(graph: OperatorGraph, changed: dict[str, list[OperatorNode]]) -> OperatorGraph:
    """Return the graph with other nodes in the places of the named ones, checked."""
    nodes = [added for name, node in graph.nodes.items() for added in changed.get(name, [node])]
    return OperatorGraph.of(graph.name, nodes)


def _reading(node: OperatorNode, instead: dict[str, str]) -> OperatorNode:
    return replace(node, inputs=tuple(instead.get(source, source) for source in node.inputs))


def _known(graph: OperatorGraph, name: str) -> OperatorNode:
    if name not in graph.nodes:
        reason = f"it has no node {name!r}. Its nodes are: {', '.join(graph.nodes)}"
        raise PipelineDefinitionError(graph.name, reason)
    return graph.nodes[name]


def _operator(graph: OperatorGraph, operator: object) -> Operator:
    if not isinstance(operator, Operator):
        reason = (
            f"new is a {type(operator).__name__}; for a graph it must be a constructed operator"
        )
        raise PipelineDefinitionError(graph.name, reason)
    return operator
