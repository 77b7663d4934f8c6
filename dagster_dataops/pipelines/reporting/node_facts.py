"""Node facts: the part of a report about one node, as JSON values."""

from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.result_roots import use_roots_above
from dagster_dataops.datasets.file_values.thumbnails import thumbnails
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.column_presence import lacking_text
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.kinds.kind_table import kind_named
from dagster_dataops.operators.outcomes.column_watch import MISSING_TABLE
from dagster_dataops.operators.outcomes.record_context import count_tables
from dagster_dataops.pipelines.reporting.changed_records import changed_records
from dagster_dataops.pipelines.reporting.excerpts import excerpt
from dagster_dataops.pipelines.reporting.failed_rows import RowBudget, failed_rows
from dagster_dataops.pipelines.reporting.published_nodes import PublishedNode, key_of_result

_IMAGE_RECORDS: Final = 20
_IMAGES: Final = 12


def counts_of(node: PublishedNode) -> dict[str, Any]:
    """Return name, state and numbers of a node; the numbers are missing without a result."""
    manifest = node.manifest
    facts: dict[str, Any] = {"name": node.name, "state": node.state}
    if manifest is None:
        return facts
    facts |= {
        "operator": manifest.operator or "source",
        "kind": manifest.kind,
        "rows_in": manifest.rows_in,
        "rows_out": manifest.rows_out,
        "out": _written(manifest),
        "dropped": None if manifest.new_records else manifest.dropped,
        "failed": manifest.failed,
        "seconds": round(manifest.seconds, 2),
        "outputs": {name: output["rows_out"] for name, output in manifest.outputs.items()},
        "parts": manifest.funnel,
    }
    return facts


def _written(manifest: Manifest) -> str:
    """Return the number of records, or of files, that a node wrote."""
    written = manifest.rows_out
    if manifest.new_records:
        return manifest.made_text
    return counted(written, "files") if kind_named(manifest.kind).holds_files else f"{written:,}"


def details_of(node: PublishedNode, names: Mapping[Any, str], budget: RowBudget) -> dict[str, Any]:
    """Return the part of a report about a node, without its numbers.

    ``names`` has the name of the node that wrote a result, by `key_of_result`.
    """
    manifest = node.manifest
    if manifest is None:
        return {}
    files = kind_named(manifest.kind).holds_files
    return {
        "run": manifest.run,
        "options": manifest.options,
        "results": [str(path) for path in node.results],
        "inputs": [names.get(key_of_result(path), str(path)) for path in node.inputs],
        "drops": _drops(manifest),
        "lacking": _lacking(manifest),
        "images": [] if files else _images(node),
        "changes": changed_records(node, manifest),
        "failures": _failures(node, manifest, budget),
    }


def _images(node: PublishedNode) -> list[dict[str, Any]]:
    """Return pictures of the first images that the records of a node name."""
    images: list[dict[str, Any]] = []
    for path in node.results:
        use_roots_above(path)
        try:
            records = JsonlDataset.of_file(path).head(_IMAGE_RECORDS)
        except DataOpsError:  # a file that was changed by hand
            continue
        images += [thumbnail._asdict() for thumbnail in thumbnails(records, _IMAGES)]
    return images


def _lacking(manifest: Manifest) -> list[str]:
    """Return, for each column that records lacked, how many did."""
    lacking = count_tables(manifest.counts).get(MISSING_TABLE, {})
    return [lacking_text(key, int(number), manifest.rows_in) for key, number in lacking.items()]


def _drops(manifest: Manifest) -> list[dict[str, Any]]:
    """Return reason, records and examples of each reason, the most frequent first."""
    return [
        {
            "reason": reason,
            "records": records,
            "examples": [
                {"line": example.get("line"), "input": excerpt(example.get("input", ""))}
                for example in manifest.drop_examples.get(reason, [])
            ],
        }
        for reason, records in manifest.drops.items()
    ]


def _failures(node: PublishedNode, manifest: Manifest, budget: RowBudget) -> dict[str, Any] | None:
    path = manifest.error_file(node.folder)
    if path is None:
        return None
    try:
        return failed_rows(path, budget)
    except (DataOpsError, ValueError) as error:  # a file that was changed by hand
        return {"path": str(path), "total": 0, "groups": [], "rows": [], "note": str(error)}
