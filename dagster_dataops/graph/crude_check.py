"""Check that the nodes behind a crude source cook it."""

from typing import Any

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.column_check import SOURCE, Graph


def check_crude(graph: Graph, source: object) -> None:
    """Check that each node that takes a crude source is a ``cook()`` with a fitting cooker.

    Args:
        graph: The graph.
        source: The source of the pipeline; sources other than crude ones are not checked.

    Raises:
        PipelineDefinitionError: A node does not cook.
        CookerError: No cooker fits a dataset, or its parameters do not.
    """
    if getattr(source, "is_crude", False) is not True:
        return
    for node in graph.nodes.values():
        if SOURCE not in node.inputs:
            continue
        check: Any = getattr(node.operator, "check_crude", None)
        if check is None:
            reason = (
                f"node {node.name!r} takes the source, which is crude (tar samples with bytes); "
                "its published form is an index without the samples. Put cook(cookers) before the "
                "node, or give source=crude(...).cook(cookers)"
            )
            raise PipelineDefinitionError(graph.name, reason)
        check(source)
