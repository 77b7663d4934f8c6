"""`OperatorGraph`: an immutable graph of operator nodes, checked on construction."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Final

from dagster_dataops.datasets.published_files import CHECKPOINTS
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.graph.artefact_check import check_artefacts
from dagster_dataops.pipelines.graph.column_check import check_columns
from dagster_dataops.pipelines.graph.export_check import check_exports
from dagster_dataops.pipelines.graph.operator_node import (
    SOURCE,
    OperatorNode,
    all_results,
    unknown_input,
)

# File systems allow 255 bytes, and the names of a node's files start with its name.
_MAX_NAME_BYTES: Final = 150
_RESERVED: Final = frozenset({"", ".", "..", CHECKPOINTS})


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """Nodes in the order in which they were added; all inputs of a node are in the graph."""

    name: str
    nodes: Mapping[str, OperatorNode]

    @classmethod
    def of(cls, name: str, nodes: Iterable[OperatorNode]) -> "OperatorGraph":
        """Check ``nodes`` and return their graph.

        Raises:
            PipelineDefinitionError: There are no nodes; a name is used twice or cannot name a
                folder; an input is unknown, or an artefact; an option names a node that is none;
                inputs form a cycle; an operator has the wrong number
                of inputs; two nodes share an export path; or declared columns do not fit.
        """
        by_name: dict[str, OperatorNode] = {}
        if name:
            _check_name(name, name)
        for node in nodes:
            _check_name(name, node.name)
            if node.name in by_name:
                raise PipelineDefinitionError(name, f"two nodes are called {node.name!r}")
            by_name[node.name] = node
        if not by_name:
            raise PipelineDefinitionError(name, "it has no nodes")
        results = {SOURCE, *all_results(by_name.values())}
        for node in by_name.values():
            _check_inputs(name, node, by_name, results)
            check_artefacts(name, node, by_name)
        graph = cls(name, MappingProxyType(by_name))
        ordered = graph.ordered()
        check_exports(name, by_name.values())
        check_columns(name, ordered)
        return graph

    def ordered(self) -> list[OperatorNode]:
        """Return the nodes in topological order; otherwise in the order they were added.

        Raises:
            PipelineDefinitionError: Their inputs form a cycle, in a graph that `of` checks.
        """
        sorter = TopologicalSorter(_upstream(self.nodes))
        position = {name: place for place, name in enumerate(self.nodes)}
        try:
            sorter.prepare()
        except CycleError as error:
            circle = " -> ".join(error.args[1])
            reason = f"its inputs form a cycle: {circle}"
            raise PipelineDefinitionError(self.name, reason) from None
        ordered: list[OperatorNode] = []
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        while ready:
            ordered.append(self.nodes[ready.pop(0)])
            sorter.done(ordered[-1].name)
            ready = sorted([*ready, *sorter.get_ready()], key=position.__getitem__)
        return ordered

    @property
    def last(self) -> OperatorNode:
        """The node that was added last. Its result is the result of the pipeline."""
        return list(self.nodes.values())[-1]

    @property
    def results(self) -> dict[str, str]:
        """The names of all results, each with the name of its node."""
        return all_results(self.nodes.values())


def _check_name(graph: str, name: str) -> None:
    """Raise an error for a name that cannot be the name of a folder."""
    reason = None
    if len(name.encode(errors="replace")) > _MAX_NAME_BYTES:
        reason = f"the name {name[:20]!r}... is longer than {_MAX_NAME_BYTES} bytes"
    elif name in _RESERVED or name.startswith(".") or not set("/\0").isdisjoint(name):
        reason = f"{name!r} cannot name a folder of results; use a plain identifier"
    if reason is not None:
        raise PipelineDefinitionError(graph[:_MAX_NAME_BYTES], reason)


def _upstream(nodes: Mapping[str, OperatorNode]) -> dict[str, list[str]]:
    """Return the nodes that each node takes its inputs and artefacts from."""
    makers = all_results(nodes.values())
    return {
        node.name: [
            *(makers[name] for name in node.inputs if name != SOURCE),
            *node.artefacts,
        ]
        for node in nodes.values()
    }


def _check_inputs(
    graph: str, node: OperatorNode, known: Mapping[str, OperatorNode], results: Container[str]
) -> None:
    for wanted in node.inputs:
        if wanted not in results:
            raise unknown_input(graph, node.name, wanted, known)
    spec = node.operator.__dataops__.spec
    if spec.inputs > 1 and len(node.inputs) != spec.inputs:
        reason = (
            f"node {node.name!r}: {spec.qualified_name} takes {spec.inputs} datasets, "
            f"its inputs are {', '.join(node.inputs)}"
        )
        raise PipelineDefinitionError(graph, reason)
