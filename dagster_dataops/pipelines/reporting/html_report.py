"""report: one HTML file about a pipeline, made from the files of its nodes."""

import html
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.configuration import config, folder_at
from dagster_dataops.datasets.durable_files import make_folder, write_durably
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import check_local
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.pipelines.reporting.failed_rows import RowBudget
from dagster_dataops.pipelines.reporting.node_facts import counts_of, details_of
from dagster_dataops.pipelines.reporting.published_nodes import (
    MOST_NODES,
    PublishedNode,
    published_nodes,
)

_MOST_DETAILED: Final = 100  # nodes
FILE_NAME: Final = "report.html"


def report(
    of: Pipeline | str | os.PathLike[str], path: str | os.PathLike[str] | None = None
) -> Path:
    """Write a report of a pipeline as one HTML file, which needs no network, and return its path.

    The report shows the records that entered and left each node and each part of a chain, drops by
    reason with examples, lengths of texts before and after each node, records that it changed side
    by side, and failed records by exception and part. It is made from manifests, results, error
    files and maps; no operator is called, and no lock is taken.

    The size of the report is limited: lengths are estimated from 1,000 records of a node, changes
    are looked for in 500, and 10,000 failed records with 8 million characters are held; the report
    says so, and names the file that has all. Partitions are shown one by one: 100 nodes or
    partitions in detail, 1,000 with their numbers.

    Args:
        of: A pipeline, whose results are below ``config.data_process_path``; or a folder that has
            the folders of nodes.
        path: The file to write; by default ``report.html`` in the folder of the pipeline.

    Raises:
        ResultMissingError: Nothing is published there.
        ConfigurationError: A path is a URL.
        StorageError: The file cannot be written.
    """
    if isinstance(of, Pipeline):
        root = config.results_root() / of.name
        places, title = [root / name for name in of.graph.nodes], of.name or "pipeline"
    else:
        check_local("folder", of)
        root = folder_at(of)
        places, title = [root], root.path.name
    if path is not None:
        check_local("path", path)
    target = root.path / FILE_NAME if path is None else Path(path).expanduser().absolute()
    return write_report(title, root.path, places, target).path


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written.

    Attributes:
        path: The file.
        nodes: Name, state and numbers of each node, as `counts_of` returns them.
    """

    path: Path
    nodes: list[dict[str, Any]]


def write_report(title: str, root: Path, places: Iterable[Root], path: Path) -> WrittenReport:
    """Write a report.

    Args:
        title: Its title.
        root: The folder that it names.
        places: Folders of the nodes.
        path: The file to write.

    Raises:
        ResultMissingError: Nothing is published there.
        StorageError: The file cannot be written.
    """
    nodes = published_nodes(places)
    if all(node.manifest is None for node in nodes):
        reason = "no node has a result there; run the pipeline before its report"
        raise ResultMissingError(str(root), reason)
    names: dict[Location, str] = {result: node.name for node in nodes for result in node.results}
    facts = _facts(nodes, names)
    content = {
        "title": title,
        "root": str(root),
        "made": datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
        "nodes": facts,
        "limits": {"nodes": MOST_NODES, "detailed": _MOST_DETAILED},
    }
    make_folder(path.parent)
    write_durably(path, _page(title, content))
    return WrittenReport(path, facts)


def _facts(nodes: Iterable[PublishedNode], names: Mapping[Location, str]) -> list[dict[str, Any]]:
    budget = RowBudget()
    found = []
    for number, node in enumerate(nodes):
        facts = counts_of(node)
        if number < _MOST_DETAILED:
            facts |= details_of(node, names, budget)
        found.append(facts)
    return found


def _page(title: str, content: Mapping[str, Any]) -> bytes:
    """Return the page with its data.

    In the data, ``<``, ``>`` and ``&`` are escaped as JSON escapes: no text can end the element.
    """
    data = orjson.dumps(content)
    for character in b"<>&":
        data = data.replace(bytes([character]), b"\\u%04x" % character)
    template = files("dagster_dataops.pipelines.reporting").joinpath("page.html").read_bytes()
    before, after = template.split(b"{{data}}")
    return before.replace(b"{{title}}", html.escape(title).encode()) + data + after
