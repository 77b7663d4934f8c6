"""Check that a source fits the graph that takes it."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.definition.reader_base import Readable
from dagster_dataops.pipelines.graph.column_check import (
    UNKNOWN,
    KnownColumns,
    check_columns,
    common_columns,
)
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode


def with_source(graph: OperatorGraph, source: object = None) -> OperatorGraph:
    """Check that a source fits a graph; return the graph, whose exports know their columns.

    Each node that exports has the declared types of the exported columns.

    Only the columns of a reader are known, and only a crude source must be cooked.

    Raises:
        PipelineDefinitionError: A node reads a column that is missing or of another type, or takes
            a crude source and is no ``cook()``.
        CookerError: No cooker fits a dataset, or its parameters do not.
    """
    types = source.column_types() if isinstance(source, Readable) else None
    columns = UNKNOWN if types is None else KnownColumns(types, complete=True)
    known = check_columns(graph.name, graph.ordered(), columns)
    if getattr(source, "is_crude", False) is True:
        _check_crude(graph, source)
    nodes = {name: _informed(node, known) for name, node in graph.nodes.items()}
    return replace(graph, nodes=MappingProxyType(nodes))


def _check_crude(graph: OperatorGraph, source: object) -> None:
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


def _informed(node: OperatorNode, known: Mapping[str, KnownColumns]) -> OperatorNode:
    """Return a node; if it exports, its operator has the types of the exported columns."""
    invocation = node.operator.__dataops__
    if invocation.output is None:
        return node
    written = node.inputs if invocation.spec.kind.exports else node.results
    columns = common_columns([known[name] for name in written if name in known])
    if not columns.types:
        return node
    operator = copy.copy(node.operator)
    operator.__dataops__ = replace(invocation, columns=columns.types)
    return replace(node, operator=operator)
