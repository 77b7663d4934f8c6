"""The estimate of a preview: the cost of the model calls for all records of its input."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.graph.graph import OperatorGraph
from dagster_dataops.graph.operator_node import SOURCE, OperatorNode
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.pipelines.dry_run import calls_models, estimates_of
from dagster_dataops.quantities import counted

_SAMPLE: Final = 50


def preview_estimate(
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
    clients: Mapping[str, Any],
) -> str:
    """Return the estimate for all records of the input, in words; empty without calls of models.

    Args:
        operator: The operator.
        inputs: Its inputs, whole.
        folder: The folder of its results.
        clients: Clients by name, for their prices.
    """
    if len(inputs) != 1:
        return ""
    graph = OperatorGraph.of("", [OperatorNode("node", operator, (SOURCE,))])
    if not calls_models(graph):
        return ""
    try:
        found = estimates_of(graph, inputs[0], _SAMPLE, clients, lambda _: folder)
    except DataOpsError as error:
        return f"no estimate: {error}"
    estimate = found.get("node")
    if estimate is None:
        return ""
    cost = estimate.cost
    return (
        f"all records of the input: {counted(estimate.calls, 'calls')}, "
        f"${cost.expected:,.4f} expected, ${cost.high:,.4f} at most"
    )
