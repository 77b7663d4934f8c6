"""node_states: the progress of each node, read from its folder."""

from collections.abc import Mapping

from dagster_dataops.checkpoints.checkpoint import existing
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published_manifest
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import OperatorNode


def node_states(graph: OperatorGraph, root: Root) -> dict[str, str]:
    """Return the state of each node in words, by name.

    A state is ``not run``, ``done, 3 rows, 1 failed`` or ``unfinished, 2 of 3 records``.
    """
    manifests: dict[str, Manifest | None] = {}
    states = {}
    for node in graph.ordered():
        folder = NodeFolder.of(root / node.name)
        try:
            folder = folder.with_outputs(node.operator.__dataops__.spec.outputs)
            manifests[node.name] = published_manifest(folder)
            states[node.name] = _state(node, folder, manifests)
        except (DataOpsError, OSError) as error:
            manifests[node.name] = None
            states[node.name] = f"unreadable: {error}"
    return states


def _state(node: OperatorNode, folder: NodeFolder, manifests: dict[str, Manifest | None]) -> str:
    manifest = manifests[node.name]
    lists_files = node.operator.__dataops__.spec.kind.holds_files
    parts = [] if manifest is None else [_done(manifest, "files" if lists_files else "rows")]
    checkpoints = existing(folder.checkpoints)
    if checkpoints:
        records = max(checkpoint.table.records for checkpoint in checkpoints)
        parts.append(_unfinished(records, [_rows_of(name, manifests) for name in node.inputs]))
    if not parts and not node.operator.__dataops__.resolved.save_data:
        return "not saved"
    return "; ".join(parts) or "not run"


def _done(manifest: Manifest, unit: str) -> str:
    failed = f", {manifest.failed:,} failed" if manifest.failed else ""
    each = [f"{facts['rows_out']:,} {name}" for name, facts in manifest.outputs.items()]
    outputs = f" ({', '.join(each)})" if each else ""
    return f"done, {counted(manifest.rows_out, unit)}{outputs}{failed}"


def _rows_of(result: str, manifests: Mapping[str, Manifest | None]) -> int | None:
    """Return the rows of a result of a node; ``None`` if it is not published."""
    node, _, output = result.partition(".")
    manifest = manifests.get(node)
    if manifest is None:
        return None
    return int(manifest.outputs[output]["rows_out"]) if output else manifest.rows_out


def _unfinished(records: int, inputs: list[int | None]) -> str:
    known = [rows for rows in inputs if rows is not None]
    if len(known) != len(inputs):
        return f"unfinished, {counted(records, 'records')}"
    return f"unfinished, {records:,} of {counted(sum(known), 'records')}"
