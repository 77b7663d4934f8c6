"""Declared columns for exports: each export learns the types of the columns that it writes."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from dagster_dataops.graph.column_check import KnownColumns, common_columns
from dagster_dataops.graph.graph import OperatorGraph, OperatorNode
from dagster_dataops.graph.result_names import results_of


def with_exported_columns(graph: OperatorGraph, known: Mapping[str, KnownColumns]) -> OperatorGraph:
    """Return the graph; each node that exports has the declared types of the exported columns.

    Args:
        graph: The graph.
        known: The known columns of each result, as `check_columns` returns them.
    """
    nodes = {name: _informed(node, known) for name, node in graph.nodes.items()}
    return replace(graph, nodes=MappingProxyType(nodes))


def _informed(node: OperatorNode, known: Mapping[str, KnownColumns]) -> OperatorNode:
    invocation = node.operator.__dataops__
    if invocation.output is None:
        return node
    written = node.inputs if invocation.spec.kind == "export" else results_of(node)
    columns = common_columns([known[name] for name in written if name in known])
    if not columns.types:
        return node
    operator = copy.copy(node.operator)
    operator.__dataops__ = replace(invocation, columns=columns.types)
    return replace(node, operator=operator)
