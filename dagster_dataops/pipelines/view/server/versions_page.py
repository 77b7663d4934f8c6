"""The page with the versions of a result, and with the difference between two of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.versions.node_versions import version_named, versions_at
from dagster_dataops.checkpoints.versions.version import CURRENT, ResultVersion
from dagster_dataops.datasets.published_files import HISTORY
from dagster_dataops.errors import VersionMissingError
from dagster_dataops.pipelines.history.changed_lines import ChangedLine
from dagster_dataops.pipelines.history.difference import Difference, compared
from dagster_dataops.pipelines.reporting.excerpts import shown_line
from dagster_dataops.pipelines.reporting.record_changes import ValueChange, changes
from dagster_dataops.pipelines.view.server.page_request import PageRequest, link
from dagster_dataops.pipelines.view.server.paging import SOON
from dagster_dataops.pipelines.view.viewed_root import ViewedNode

_SAMPLES = 20  # lines of each kind


@dataclass(frozen=True)
class ShownChange:
    """A line that differs between two versions.

    Attributes:
        change: ``changed``, ``new`` or ``gone``.
        record: The number of the input record, as text; empty if it is not known.
        cause: Why it differs.
        columns: The columns that differ.
    """

    change: str
    record: str
    cause: str
    columns: Sequence[ValueChange]


def versions_number(node: ViewedNode) -> str | None:
    """Return how many versions of a node are kept; ``None`` if there are none."""
    if node.manifest is None or node.is_kept:
        return None
    if node.folder.bucket is not None:  # a page with another subject asks no store for them
        return ""
    return str(len(versions_at(node.folder).numbers()) or "") or None


def versions_page(request: PageRequest) -> dict[str, Any]:
    """Return the versions of a node, and what differs between two of them."""
    folder = request.node.folder
    found = list(_versions(folder))
    names = [one.name for one in found]
    after = request.query.get("after", CURRENT)
    earlier = names[: names.index(after)] if after in names else []
    before = request.query.get("before", earlier[-1] if earlier else "")
    context = {
        "versions": [(one, _address(request, one)) for one in reversed(found)],
        "before": before,
        "after": after,
    }
    if before not in names or after not in names:
        return context
    sides = [found[names.index(name)] for name in (before, after)]
    return context | _difference(request, sides[0], sides[1])


def _versions(folder: NodeFolder) -> Iterator[ResultVersion]:
    for name in (*map(str, versions_at(folder).numbers()), CURRENT):
        try:
            yield version_named(folder, name)
        except VersionMissingError:  # removed meanwhile, or damaged
            continue


def _address(request: PageRequest, version: ResultVersion) -> str:
    if version.name == CURRENT:
        return request.link("records")
    return link("records", f"{request.node.key}/{HISTORY}/{version.name}", output=request.output)


def _difference(
    request: PageRequest, before: ResultVersion, after: ResultVersion
) -> dict[str, Any]:
    folder, output = request.node.folder, request.output
    states = [(one.name, one.manifest.run, one.manifest.fingerprint) for one in (before, after)]
    work = request.view.works.begun(
        ("versions", request.node.key, output, *states),
        lambda _: compared(folder, before, after, _SAMPLES, (output,)),
    )
    if not work.ready or work.error:
        return {"note": work.error, "refresh": 0 if work.error else SOON, "work": work}
    difference: Difference = work.result
    lines = difference.results.get(output)
    return {
        "difference": difference,
        "lines": lines,
        "rows": [_shown(one) for one in lines.samples] if lines else [],
    }


def _shown(line: ChangedLine) -> ShownChange:
    sides = [shown_line(text.encode()) if text else {} for text in (line.before, line.after)]
    record = line.input_after or line.input_before
    number = f"input record {record:,}" if record else ""
    return ShownChange(line.change, number, line.cause, changes(sides[0], sides[1]))
