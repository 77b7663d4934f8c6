"""Check the declared columns of a graph: each column that a node reads must exist."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.kinds.kind import RecordOrigin
from dagster_dataops.operators.options.declared_columns import (
    NOTHING,
    accepts_type,
    column_types,
    type_text,
)
from dagster_dataops.operators.options.read_columns import columns_needed
from dagster_dataops.operators.options.settings import ALLOWED
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode


class KnownColumns(NamedTuple):
    """The known columns of a result.

    Attributes:
        types: The types by column.
        complete: Whether the result has no other columns.
    """

    types: Mapping[str, Any]
    complete: bool


UNKNOWN: Final = KnownColumns({}, complete=False)


def check_columns(
    pipeline: str, nodes: Sequence[OperatorNode], source: KnownColumns = UNKNOWN
) -> dict[str, KnownColumns]:
    """Check that each column that a node reads exists and has a matching type.

    Returns:
        The known columns of each result; nothing if no columns are declared.

    Raises:
        PipelineDefinitionError: A node reads a column that is missing or of another type. The
            message names the node, the column and the existing columns.
    """
    if not source.types and all(
        node.operator.__dataops__.spec.declared == NOTHING for node in nodes
    ):
        return {}
    results = {SOURCE: source}
    for node in nodes:
        inputs = [results[name] for name in node.inputs]
        spec = node.operator.__dataops__.spec
        if spec.inputs == 1:  # declarations do not say which of several inputs they apply to
            for where, known in zip(node.inputs, inputs, strict=True):
                _check_reads(pipeline, node, where, known)
        columns = _columns_after(node, inputs)
        results |= dict.fromkeys(node.results, columns)
    return results


def _declared(node: OperatorNode, kind: str) -> dict[str, Any] | None:
    invocation = node.operator.__dataops__
    declaration = getattr(invocation.spec.declared, kind)
    if declaration is None:
        return None
    name = invocation.spec.qualified_name
    return column_types(name, kind, declaration, invocation.options)


def _check_reads(pipeline: str, node: OperatorNode, where: str, columns: KnownColumns) -> None:
    if node.operator.__dataops__.resolved.missing == ALLOWED:
        return
    declared = _declared(node, "reads") or {}
    for name, column in columns_needed(declared):
        wanted = declared[name] if column == name else Any  # a selector says nothing of the column
        there = columns.types.get(column, UNKNOWN)
        if there is UNKNOWN and not columns.complete:
            continue
        if there is not UNKNOWN and accepts_type(wanted, there):
            continue
        kind = "" if wanted is Any else f" as {type_text(wanted)}"
        reads = f"node {node.name!r} reads column {column!r}{kind}"
        if there is UNKNOWN:
            reason = f"{reads}, which {_origin(where)} does not have. {_listed(column, columns)}"
        else:
            reason = f"{reads}, and in {_origin(where)} it is {type_text(there)}"
        raise PipelineDefinitionError(pipeline, reason)


def _origin(where: str) -> str:
    return "the source" if where == SOURCE else f"the result of {where!r}"


def _listed(column: str, known: KnownColumns) -> str:
    near = nearest(column, known.types)
    columns = ", ".join(f"{name} ({type_text(kind)})" for name, kind in known.types.items())
    return f"It has: {columns or 'no columns'}{f'. Did you mean {near!r}?' if near else ''}"


def _columns_after(node: OperatorNode, inputs: list[KnownColumns]) -> KnownColumns:
    """Return the known columns of a node's result."""
    columns = _declared(node, "columns")
    if columns is not None:
        return KnownColumns(columns, complete=True)
    spec = node.operator.__dataops__.spec
    writes = _declared(node, "writes")
    if writes is None and spec.origin is not RecordOrigin.SAME:
        return UNKNOWN
    before = common_columns(inputs) if spec.inputs == 1 else UNKNOWN
    return before._replace(types={**before.types, **(writes or {})})


def common_columns(inputs: list[KnownColumns]) -> KnownColumns:
    """Return the known columns of records from any of several inputs."""
    if not inputs:
        return UNKNOWN
    first = inputs[0]
    if all(known == first for known in inputs):
        return first
    same = {
        column: kind
        for column, kind in first.types.items()
        if all(known.types.get(column, UNKNOWN) == kind for known in inputs)
    }
    return KnownColumns(same, complete=False)
