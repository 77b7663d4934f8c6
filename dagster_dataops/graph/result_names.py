"""Names of results: ``upper`` for the result of a node, ``split.train`` for a named output."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.signature import nearest


class NamedNode(Protocol):
    """The parts of a node that its results are named by."""

    @property
    def name(self) -> str:
        """The name."""
        ...

    @property
    def operator(self) -> Operator:
        """The operator."""
        ...


def results_of(node: NamedNode) -> list[str]:
    """Return the names of the results of a node, as other nodes use them as inputs."""
    outputs = node.operator.__dataops__.spec.outputs
    return [f"{node.name}.{output}" for output in outputs] or [node.name]


def all_results(nodes: Iterable[NamedNode]) -> dict[str, str]:
    """Return the names of all results, each with the name of its node."""
    return {result: node.name for node in nodes for result in results_of(node)}


def unknown_input(
    pipeline: str, taker: str, wanted: str, source: str, nodes: Mapping[str, NamedNode]
) -> PipelineDefinitionError:
    """Return the error for an input that is no result.

    Args:
        pipeline: The name of the pipeline.
        taker: The node with the input.
        wanted: The input.
        source: The name of the source of the pipeline.
        nodes: All nodes.
    """
    takes = f"node {taker!r} takes its input from {wanted!r}"
    if wanted in nodes:
        several = ", ".join(f"ppl.{name}" for name in results_of(nodes[wanted]))
        reason = f"{takes}, which has several results; name one of them as its input: {several}"
        return PipelineDefinitionError(pipeline, reason)
    node, _, output = wanted.partition(".")
    if output and node in nodes:
        known = results_of(nodes[node])
        kind = "result" if known == [node] else "results"
        reason = f"{takes}; node {node!r} has the {kind} {', '.join(known)}"
        return PipelineDefinitionError(pipeline, reason)
    names = [source, *all_results(nodes.values())]
    near = nearest(wanted, names)
    hint = f"; did you mean {near!r}?" if near else f". Nodes: {', '.join(nodes)}"
    return PipelineDefinitionError(pipeline, f"{takes}, which is not a node{hint}")
