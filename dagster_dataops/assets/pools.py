"""Dagster's concurrency pools by node."""

from collections.abc import Mapping

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.graph import OperatorGraph
from dagster_dataops.operators.signature import nearest


def pools_by_node(graph: OperatorGraph, pools: Mapping[str, str] | str) -> Mapping[str, str]:
    """Return the pool of each node that has one.

    Args:
        graph: The nodes.
        pools: By node, or one for all nodes.

    Raises:
        PipelineDefinitionError: A node is unknown.
    """
    if isinstance(pools, str):
        return dict.fromkeys(graph.nodes, pools)
    for name in pools:
        if name not in graph.nodes:
            near = nearest(name, list(graph.nodes))
            hint = f"; did you mean {near!r}?" if near else f". Nodes: {', '.join(graph.nodes)}"
            reason = f"a pool is given for {name!r}, which is not a node{hint}"
            raise PipelineDefinitionError(graph.name, reason)
    return pools


def common_pool(graph: OperatorGraph, pools: Mapping[str, str]) -> str | None:
    """Return the pool of a step that runs all nodes; ``None`` without any.

    Raises:
        PipelineDefinitionError: There are several pools, but a step can have only one.
    """
    names = sorted(set(pools.values()))
    if len(names) > 1:
        reason = (
            f"its nodes are in the pools {', '.join(names)}, but a step can have only one pool; "
            'use layout="steps", or the same pool for all nodes'
        )
        raise PipelineDefinitionError(graph.name, reason)
    return names[0] if names else None
