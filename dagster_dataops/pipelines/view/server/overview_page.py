"""The first page: all nodes, as a picture and as a table."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dagster_dataops.pipelines.reporting.node_facts import counts_of
from dagster_dataops.pipelines.view.server.page_request import View, link
from dagster_dataops.pipelines.view.shown.funnel_picture import MOST, FunnelNode, funnel
from dagster_dataops.pipelines.view.viewed_root import ViewedNode, ViewedRoot


def overview_page(view: View) -> dict[str, Any]:
    """Return the picture of the nodes, and their numbers."""
    nodes = list(view.root.nodes().values())
    return {
        "picture": funnel(funnel_nodes(view.root, nodes, node_link)),
        "most": MOST,
        "nodes": [
            counts_of(node)
            | {
                "title": node.title,
                "link": node_link(node),
                "dropped_link": link("dropped", node.key),
                "failed_link": link("failed", node.key),
            }
            for node in nodes
        ],
    }


def node_link(node: ViewedNode) -> str:
    """Return the address of the first page of a node."""
    return link("records" if node.manifest else "node", node.key)


def funnel_nodes(
    root: ViewedRoot, nodes: Iterable[ViewedNode], link_of: Callable[[ViewedNode], str]
) -> list[FunnelNode]:
    """Return the boxes of the picture: the source files, then the nodes."""
    sources: dict[str, FunnelNode] = {}
    shown = []
    for node in nodes:
        inputs = []
        for facts in node.manifest.inputs if node.manifest else ():
            path = str(facts.get("url") or facts["path"])
            rows = _rows_of(node, facts)
            maker = root.node_of_result(path)
            if maker is None:
                name = path.rpartition("/")[2] or path
                said = f"{rows:,} records" if rows else "source"
                source = FunnelNode(f"source {path}", name, "", None, said, rows, 0, 0, ())
                sources.setdefault(source.key, source)
                inputs.append((source.key, rows))
            else:
                inputs.append((maker[0].key, rows))
        shown.append(_of(node, inputs, link_of(node)))
    return [*sources.values(), *shown]


def _rows_of(node: ViewedNode, facts: Mapping[str, Any]) -> int:
    """Return the number of records of an input; 0 if it is not known."""
    if facts.get("rows") is None and node.manifest and len(node.manifest.inputs) == 1:
        return node.manifest.rows_in
    return int(facts.get("rows") or 0)


def _of(node: ViewedNode, inputs: list[tuple[str, int]], link: str) -> FunnelNode:
    facts = counts_of(node)
    if node.manifest is None:
        return FunnelNode(node.key, node.name, link, None, node.state, 0, 0, 0, ())
    entered = facts["rows_in"] if inputs else None
    before = f"{entered:,} → " if entered is not None else ""
    return FunnelNode(
        node.key,
        node.name,
        link,
        entered,
        f"{before}{facts['out']}",
        facts["rows_out"],
        facts["dropped"] or 0,
        facts["failed"],
        inputs,
        node.state,
    )
