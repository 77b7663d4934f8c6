"""The page with the versions of a result, and with the difference between two of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.checkpoints.versions.node_versions import version_named, versions_at
from dagster_dataops.checkpoints.versions.version import CURRENT
from dagster_dataops.datasets.published_files import HISTORY
from dagster_dataops.pipelines.history.changed_lines import ChangedLine
from dagster_dataops.pipelines.history.difference import Difference, compared
from dagster_dataops.pipelines.reporting.excerpts import shown_line
from dagster_dataops.pipelines.reporting.record_changes import ValueChange, changes
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork
from dagster_dataops.pipelines.view.server.page_request import PageRequest, link
from dagster_dataops.pipelines.view.server.paging import waiting
from dagster_dataops.pipelines.view.viewed_root import ViewedNode

_SAMPLES = 20  # lines of each kind


@dataclass(frozen=True)
class ShownChange:
    """A line that differs between two versions.

    The number of the input record is a text, empty if it is not known.
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
    """Return the versions of a node, and what differs between two of them.

    Versions in a bucket are fetched only if two are chosen.
    """
    manifests = dict(_versions(request.node))
    names = list(manifests)
    after = request.query.get("after", CURRENT)
    earlier = names[: names.index(after)] if after in names else []
    near = earlier[-1:] if request.node.folder.bucket is None else []
    before = request.query.get("before", "".join(near))
    context = {
        "versions": [
            (name, manifest, _address(request, name))
            for name, manifest in reversed(manifests.items())
        ],
        "before": before,
        "after": after,
    }
    if before not in manifests or after not in manifests:
        return context
    return context | _difference(request, {name: manifests[name] for name in (before, after)})


def _versions(node: ViewedNode) -> Iterator[tuple[str, Manifest]]:
    """Yield name and manifest of each version, the present one last."""
    versions = versions_at(node.folder)
    for number in versions.numbers():
        manifest = Manifest.parse(versions.manifest(number), versions.manifest_file(number))
        if manifest is not None:  # neither removed meanwhile, nor damaged
            yield str(number), manifest
    if node.manifest is not None:
        yield CURRENT, node.manifest


def _address(request: PageRequest, name: str) -> str:
    if name == CURRENT:
        return request.link("records")
    return link("records", f"{request.node.key}/{HISTORY}/{name}", output=request.output)


def _difference(request: PageRequest, sides: Mapping[str, Manifest]) -> dict[str, Any]:
    folder, output = request.node.folder, request.output
    states = [(name, version.run, version.fingerprint) for name, version in sides.items()]

    def compare(_: BackgroundWork) -> Difference:
        versions = [version_named(folder, name) for name in sides]
        return compared(folder, versions[0], versions[-1], _SAMPLES, (output,))

    work = request.view.works.begun(("versions", request.node.key, output, *states), compare)
    if not work.ready or work.error:
        return waiting(work)
    difference: Difference = work.result
    lines = difference.results.get(output)
    return {
        "difference": difference,
        "lines": lines,
        "rows": [_shown(line) for line in lines.samples] if lines else [],
    }


def _shown(line: ChangedLine) -> ShownChange:
    sides = [shown_line(text.encode()) if text else {} for text in (line.before, line.after)]
    record = line.input_after or line.input_before
    number = f"input record {record:,}" if record else ""
    return ShownChange(line.change, number, line.cause, changes(sides[0], sides[1]))
