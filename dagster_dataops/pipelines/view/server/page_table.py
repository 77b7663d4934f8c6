"""The pages about a node. A new page is a function, a template, and a line of this table."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dagster_dataops.pipelines.view.server.dropped_page import dropped_page
from dagster_dataops.pipelines.view.server.fact_pages import changes_page, numbers_page
from dagster_dataops.pipelines.view.server.page_request import PageRequest
from dagster_dataops.pipelines.view.server.record_pages import failed_page, records_page
from dagster_dataops.pipelines.view.server.trace_pages import input_page, record_page
from dagster_dataops.pipelines.view.server.versions_page import versions_number, versions_page
from dagster_dataops.pipelines.view.viewed_root import ViewedNode


class NodePage(NamedTuple):
    """A page about a node.

    Attributes:
        name: Its name in addresses, and of its template.
        title: Its title in the list of pages; empty if it is not in the list.
        context: Returns the values for its template.
        number: Returns a number to show beside the title; ``None`` hides the page.
    """

    name: str
    title: str
    context: Callable[[PageRequest], dict[str, Any]]
    number: Callable[[ViewedNode], str | None]


def _rows(node: ViewedNode) -> str | None:
    return None if node.manifest is None else f"{node.manifest.rows_out:,}"


def _dropped(node: ViewedNode) -> str | None:
    manifest = node.manifest
    if manifest is None or not manifest.inputs or manifest.new_records:
        return None
    return f"{manifest.dropped:,}"


def _failed(node: ViewedNode) -> str | None:
    return None if node.manifest is None else f"{node.manifest.failed:,}"


def _compared(node: ViewedNode) -> str | None:
    return "" if node.manifest and node.manifest.inputs else None


def _always(node: ViewedNode) -> str | None:
    return None if node.manifest is None else ""


NODE_PAGES: Final = (
    NodePage("records", "Records", records_page, _rows),
    NodePage("dropped", "Dropped", dropped_page, _dropped),
    NodePage("failed", "Failed", failed_page, _failed),
    NodePage("changes", "Changes", changes_page, _compared),
    NodePage("numbers", "Distributions", numbers_page, _always),
    NodePage("versions", "Versions", versions_page, versions_number),
    NodePage("record", "", record_page, _always),
    NodePage("input", "", input_page, _always),
)
