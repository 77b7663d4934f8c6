"""Check the declared columns of a graph: each column that a node reads must exist."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.result_names import results_of
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.reader_base import Readable
from dagster_dataops.operators.options.declared_columns import (
    NOTHING,
    accepts_type,
    column_types,
    type_text,
)
from dagster_dataops.operators.options.signature import nearest

SOURCE: Final = "source"


class Node(Protocol):
    """The parts of a node that the check uses."""

    @property
    def name(self) -> str:
        """The name."""
        ...

    @property
    def operator(self) -> Operator:
        """The operator."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        ...


class Graph(Protocol):
    """The parts of a graph that the check uses."""

    @property
    def name(self) -> str:
        """The pipeline's name."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by name."""
        ...

    def ordered(self) -> Sequence[Node]:
        """Return the nodes in topological order."""
        ...


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """The known columns of a result.

    Attributes:
        types: The types by column.
        complete: Whether the result has no other columns.
    """

    types: Mapping[str, Any]
    complete: bool


_UNKNOWN: Final = KnownColumns({}, complete=False)


def check_source(graph: Graph, source: object) -> dict[str, KnownColumns]:
    """Check that the columns of a reader fit the columns that the pipeline reads.

    Returns:
        The known columns of each result.

    Args:
        graph: The pipeline's graph.
        source: The pipeline's source. Only the columns of a reader are known.

    Raises:
        PipelineDefinitionError: A node reads a column that is missing or of another type.
    """
    types = source.column_types() if isinstance(source, Readable) else None
    return check_columns(graph, _UNKNOWN if types is None else KnownColumns(types, complete=True))


def check_columns(graph: Graph, source: KnownColumns = _UNKNOWN) -> dict[str, KnownColumns]:
    """Check that each column that a node reads exists and has a matching type.

    Returns:
        The known columns of each result; nothing if no columns are declared.

    Args:
        graph: The pipeline's graph.
        source: The known columns of the source.

    Raises:
        PipelineDefinitionError: A node reads a column that is missing or of another type. The
            message names the node, the column and the existing columns.
    """
    if not source.types and not any(_declares(node) for node in graph.nodes.values()):
        return {}
    results = {SOURCE: source}
    for node in graph.ordered():
        inputs = [results[name] for name in node.inputs]
        spec = node.operator.__dataops__.spec
        if spec.inputs == 1:  # declarations do not say which of several inputs they apply to
            for where, found in zip(node.inputs, inputs, strict=True):
                _check_reads(graph.name, node, where, found)
        columns = _columns_after(node, inputs)
        results |= dict.fromkeys(results_of(node), columns)
    return results


def _declares(node: Node) -> bool:
    return node.operator.__dataops__.spec.declared != NOTHING


def _declared(node: Node, kind: str) -> dict[str, Any] | None:
    invocation = node.operator.__dataops__
    declaration = getattr(invocation.spec.declared, kind)
    if declaration is None:
        return None
    name = invocation.spec.qualified_name
    return column_types(name, kind, declaration, invocation.options)


def _check_reads(pipeline: str, node: Node, where: str, found: KnownColumns) -> None:
    for column, wanted in (_declared(node, "reads") or {}).items():
        there = found.types.get(column, _UNKNOWN)
        if there is _UNKNOWN and not found.complete:
            continue
        if there is not _UNKNOWN and accepts_type(wanted, there):
            continue
        kind = "" if wanted is Any else f" as {type_text(wanted)}"
        reads = f"node {node.name!r} reads column {column!r}{kind}"
        if there is _UNKNOWN:
            reason = f"{reads}, which {_origin(where)} does not have. {_listed(column, found)}"
        else:
            reason = f"{reads}, and in {_origin(where)} it is {type_text(there)}"
        raise PipelineDefinitionError(pipeline, reason)


def _origin(where: str) -> str:
    return "the source" if where == SOURCE else f"the result of {where!r}"


def _listed(column: str, found: KnownColumns) -> str:
    near = nearest(column, found.types)
    columns = ", ".join(f"{name} ({type_text(kind)})" for name, kind in found.types.items())
    return f"It has: {columns or 'no columns'}{f'. Did you mean {near!r}?' if near else ''}"


def _columns_after(node: Node, inputs: list[KnownColumns]) -> KnownColumns:
    """Return the known columns of a node's result."""
    columns = _declared(node, "columns")
    if columns is not None:
        return KnownColumns(columns, complete=True)
    spec = node.operator.__dataops__.spec
    writes = _declared(node, "writes")
    if writes is None and spec.kind_of_columns != "selection":
        return _UNKNOWN
    before = common_columns(inputs) if spec.inputs == 1 else _UNKNOWN
    return replace(before, types={**before.types, **(writes or {})})


def common_columns(inputs: list[KnownColumns]) -> KnownColumns:
    """Return the known columns of records from any of several inputs."""
    if not inputs:
        return _UNKNOWN
    first = inputs[0]
    if all(one == first for one in inputs):
        return first
    same = {
        column: kind
        for column, kind in first.types.items()
        if all(one.types.get(column, _UNKNOWN) == kind for one in inputs)
    }
    return KnownColumns(same, complete=False)
