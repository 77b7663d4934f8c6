"""report: the pages of a view about all nodes of a pipeline as one HTML file."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from dagster_dataops.configuration import config, folder_at
from dagster_dataops.datasets.durable_files import make_folder, write_durably
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import check_local
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.pipelines.reporting.failed_rows import RowBudget
from dagster_dataops.pipelines.reporting.node_facts import counts_of, details_of
from dagster_dataops.pipelines.reporting.published_nodes import key_of_result
from dagster_dataops.pipelines.view.server.overview_page import funnel_nodes
from dagster_dataops.pipelines.view.server.page_templates import rendered, style
from dagster_dataops.pipelines.view.shown.funnel_picture import MOST, funnel
from dagster_dataops.pipelines.view.shown.histograms import paired_histograms
from dagster_dataops.pipelines.view.viewed_root import ViewedNode, ViewedRoot

_MOST_DETAILED: Final = 100  # nodes
FILE_NAME: Final = "report.html"


def report(
    of: Pipeline | str | os.PathLike[str], path: str | os.PathLike[str] | None = None
) -> Path:
    """Write a report of a pipeline as one HTML file, which needs no network, and return its path.

    The report shows the graph with the records that entered and left each node and each part of a
    chain, drops by reason with examples, the numbers and lengths of each column before and after a
    node, of the same records of its input, records that it changed with the words marked, and
    failed records by exception and part. It is made from manifests, results, error files and maps;
    no operator is called, and no lock is taken.

    The size of the report is limited: 500 records of the input of a node are compared, and 10,000
    failed records with 8 million characters are held; the report says so, and names the file that
    has all. Partitions are shown one by one: 100 nodes or partitions in detail, 1,000 with their
    numbers.

    Args:
        of: A pipeline, whose results are below ``config.data_process_path``; or a folder that has
            the folders of nodes, or its URL.
        path: The file to write; by default ``report.html`` in the folder of the pipeline.

    Raises:
        ResultMissingError: Nothing is published there.
        NewerVersionError: What is published there is of a newer version; beside other results such
            a node is shown with its error.
        ConfigurationError: ``path`` is a URL.
        StorageError: The file cannot be written, or, likewise, no manifest can be read.
    """
    if isinstance(of, Pipeline):
        root = config.results_root() / of.name
        places, title = [root / name for name in of.graph.nodes], of.name or "pipeline"
    else:
        root = folder_at(of)
        places, title = [root], root.path.name
    if path is not None:
        check_local("path", path)
    target = root.path / FILE_NAME if path is None else Path(path).expanduser().absolute()
    return write_report(title, root.path, places, target).path


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written."""

    path: Path
    nodes: list[dict[str, Any]]


def write_report(title: str, root: Path, places: Iterable[Root], path: Path) -> WrittenReport:
    """Write a report.

    Raises:
        ResultMissingError: Nothing is published there.
        NewerVersionError: All that is published there is of a newer version.
        StorageError: The file cannot be written, or no manifest can be read.
    """
    shown = ViewedRoot(title, list(places), Root(root))
    nodes = list(shown.nodes().values())
    if all(node.manifest is None for node in nodes):
        for error in filter(None, (node.error for node in nodes)):
            raise error
        reason = "no node has a result there; run the pipeline before its report"
        raise ResultMissingError(str(root), reason)
    facts = report_facts(nodes)
    make_folder(path.parent)
    write_durably(path, _page(shown, nodes, facts))
    return WrittenReport(path, facts)


def report_facts(nodes: Sequence[ViewedNode]) -> list[dict[str, Any]]:
    """Return what a report shows of each node; only numbers of those after the hundredth."""
    names = {key_of_result(path): node.name for node in nodes for path in node.results}
    budget = RowBudget()
    shown = []
    for number, node in enumerate(nodes):
        facts = counts_of(node)
        if number < _MOST_DETAILED:
            facts |= details_of(node, names, budget)
        shown.append(facts)
    return shown


def _page(
    shown: ViewedRoot, nodes: Sequence[ViewedNode], facts: Sequence[Mapping[str, Any]]
) -> bytes:
    links = {
        node.key: f"#node-{number}" if "results" in node_facts else ""
        for number, (node, node_facts) in enumerate(zip(nodes, facts, strict=True))
    }
    picture = funnel(funnel_nodes(shown, nodes, lambda node: links[node.key]))
    rows = [
        {**node_facts, **_of_page(node_facts, f"node-{number}")}
        for number, node_facts in enumerate(facts)
    ]
    return rendered(
        "report",
        title=shown.title,
        folder=str(shown.top),
        command=f"python -m dagster_dataops view {shlex.quote(str(shown.top))}",
        made=datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
        picture=picture,
        most=MOST,
        nodes=rows,
        left=sum("rows_in" in node_facts and "results" not in node_facts for node_facts in facts),
        detailed=_MOST_DETAILED,
        style=Markup(style()),  # noqa: S704 - of this package
    )


def _of_page(facts: Mapping[str, Any], anchor: str) -> dict[str, Any]:
    """Return what the page shows beside the facts about a node."""
    columns = facts.get("changes", {}).get("columns", ())
    return {
        "title": facts["name"],
        "anchor": anchor,
        "link": f"#{anchor}" if "results" in facts else "",
        "dropped_link": f"#{anchor}-dropped" if facts.get("drops") else "",
        "failed_link": f"#{anchor}-failed" if facts.get("failures") else "",
        "pairs": [
            (name, title, picture)
            for name, before, after in columns
            for title, picture in paired_histograms(before, after)
        ],
    }
