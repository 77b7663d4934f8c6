"""Dagster's concurrency pools by node: operators that share the limit of one API."""

from collections.abc import Mapping

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.graph import OperatorGraph
from dagster_dataops.operators.signature import nearest


def pools_by_node(graph: OperatorGraph, pools: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``pools`` if every one belongs to a node.

    Raises:
        PipelineDefinitionError: One does not.
    """
    for name in pools:
        if name not in graph.nodes:
            near = nearest(name, list(graph.nodes))
            hint = f"; did you mean {near!r}?" if near else f". Nodes: {', '.join(graph.nodes)}"
            reason = f"a pool is given for {name!r}, which is no node{hint}"
            raise PipelineDefinitionError(graph.name, reason)
    return pools


def common_pool(graph: OperatorGraph, pools: Mapping[str, str]) -> str | None:
    """Return the one pool of a step that runs all nodes, ``None`` if there is none.

    Raises:
        PipelineDefinitionError: There are several, and a step has but one.
    """
    names = sorted(set(pools.values()))
    if len(names) > 1:
        reason = (
            f"its nodes are in the pools {', '.join(names)}, and one step for all of them can be "
            'in one alone; use layout="steps", or the same pool for all'
        )
        raise PipelineDefinitionError(graph.name, reason)
    return names[0] if names else None
