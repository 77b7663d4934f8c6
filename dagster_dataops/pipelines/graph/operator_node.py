"""`OperatorNode`: one use of an operator in a graph, and the names of the results of nodes.

The result of a node is called as the node, such as ``upper``, a named output ``split.train``.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.signature import nearest

SOURCE: Final = "source"  # the input of the graph


@frozen(eq=True, kw_only=False)
class OperatorNode:
    """One use of an operator in a graph.

    Attributes:
        name: The name, unique in the graph; also of the node's folder and asset.
        operator: The operator.
        inputs: The names of the input nodes, in order, such as ``upper``, or ``split.train`` for
            an output of a node with several; ``source`` for the graph's own input.
    """

    name: str
    operator: Operator
    inputs: tuple[str, ...]

    @property
    def artefacts(self) -> tuple[str, ...]:
        """The names of the nodes whose artefacts are options of the operator."""
        return self.operator.__dataops__.artefacts

    @property
    def results(self) -> list[str]:
        """The names of the results, as other nodes use them as inputs."""
        outputs = self.operator.__dataops__.spec.outputs
        return [f"{self.name}.{output}" for output in outputs] or [self.name]


def all_results(nodes: Iterable[OperatorNode]) -> dict[str, str]:
    """Return the names of all results, each with the name of its node."""
    return {result: node.name for node in nodes for result in node.results}


def unknown_input(
    pipeline: str, taker: str, wanted: str, nodes: Mapping[str, OperatorNode]
) -> PipelineDefinitionError:
    """Return the error for an input that is no result."""
    takes = f"node {taker!r} takes its input from {wanted!r}"
    if wanted in nodes:
        several = ", ".join(f"ppl.{name}" for name in nodes[wanted].results)
        reason = f"{takes}, which has several results; name one of them as its input: {several}"
        return PipelineDefinitionError(pipeline, reason)
    node, _, output = wanted.partition(".")
    if output and node in nodes:
        known = nodes[node].results
        kind = "result" if known == [node] else "results"
        reason = f"{takes}; node {node!r} has the {kind} {', '.join(known)}"
        return PipelineDefinitionError(pipeline, reason)
    names = [SOURCE, *all_results(nodes.values())]
    near = nearest(wanted, names)
    hint = f"; did you mean {near!r}?" if near else f". Nodes: {', '.join(nodes)}"
    return PipelineDefinitionError(pipeline, f"{takes}, which is not a node{hint}")
