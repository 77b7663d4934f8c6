"""Check the exports of a graph: no two nodes may share a path."""

from collections.abc import Iterable
from pathlib import Path

from dagster_dataops.configuration import config
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.graph.operator_node import OperatorNode


def check_exports(graph: str, nodes: Iterable[OperatorNode]) -> None:
    """Check that no export replaces another.

    Raises:
        PipelineDefinitionError: Two nodes export to one path, or one into the folder of another.
    """
    seen: list[tuple[Path, bool, str]] = []
    for node in nodes:
        target = _target_of(node)
        if target is None:
            continue
        path, folder = target
        for other, whole, name in seen:
            shared = path == other
            if shared or (whole and other in path.parents) or (folder and path in other.parents):
                where = f"to {path}" if shared else f"into one folder, {min(path, other)}"
                advice = "use a different file for each" if shared else "use different folders"
                reason = f"nodes {name!r} and {node.name!r} both export {where}; {advice}"
                raise PipelineDefinitionError(graph, reason)
        seen.append((path, folder, node.name))


def _target_of(node: OperatorNode) -> tuple[Path, bool] | None:
    """Return the path that a node replaces, and whether it is a folder; ``None`` without one."""
    invocation = node.operator.__dataops__
    output = invocation.output
    if output is None:
        return None
    if not invocation.spec.kind.exports:
        from dagster_dataops.datasets.exporters.endings import names_file  # only for exports

        return (output.expanduser().absolute(), False) if names_file(output) else None
    place = getattr(node.operator, "place", "file")
    path = output.parent if place == "pattern" else output
    return (config.data_process_path / path.expanduser()).absolute(), place != "file"
