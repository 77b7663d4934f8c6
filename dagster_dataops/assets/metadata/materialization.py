"""Metadata of materializations, made from run reports and datasets."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import dagster as dg

from dagster_dataops.assets.metadata.failure_summary import failures
from dagster_dataops.assets.metadata.file_metadata import (
    artefact_metadata,
    delivery_metadata,
    export_metadata,
)
from dagster_dataops.assets.metadata.histogram_pictures import histogram_metadata
from dagster_dataops.assets.metadata.leaf_metadata import leaf_metadata
from dagster_dataops.assets.metadata.markdown import cell, table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.assets.metadata.record_counts import count_metadata
from dagster_dataops.assets.metadata.trace_command import trace_metadata
from dagster_dataops.checkpoints.folder.manifest import published_uri
from dagster_dataops.datasets.artefact import Artefact
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError
from dagster_dataops.execution.progress import duration
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.quantities import counted

_PREVIEW_ROWS: Final = 5
_PREVIEW_COLUMNS: Final = 8
_LONG_SECONDS: Final = 60


def dataset_metadata(dataset: JsonlDataset, partition: str | None = None) -> dict[str, Any]:
    """Return row count, preview of the first rows, location and size.

    The location is in Dagster's own key if possible. A path value would widen the metadata column
    of the asset page and narrow all other values.

    Args:
        dataset: The dataset that was written.
        partition: The key of its partition; the row count then counts the partition only.
    """
    count = "dagster/row_count" if partition is None else "dagster/partition_row_count"
    counted = {} if dataset.rows is None else {count: dataset.rows}
    return {
        **counted,
        f"{METADATA_PREFIX}/preview": dg.MetadataValue.md(_preview_of(dataset)),
        **_place_of(dataset, partition),
        "dagster/size_bytes": dataset.size_bytes,
    }


def written_once(context: dg.AssetExecutionContext, events: Iterable[Any]) -> Iterator[Any]:
    """Yield the events of a step, with metadata moved from the results to the context.

    Dagster stores metadata on a result twice: in the step's output and in the materialization.
    `add_asset_metadata` stores it once.
    """
    for event in events:
        if not isinstance(event, dg.MaterializeResult) or not event.metadata:
            yield event
            continue
        context.add_asset_metadata(event.metadata, asset_key=event.asset_key)
        yield with_metadata(event, None)


def with_metadata(
    event: dg.MaterializeResult[Any], metadata: Mapping[str, Any] | None
) -> dg.MaterializeResult[Any]:
    """Return a result with other metadata."""
    return dg.MaterializeResult(
        asset_key=event.asset_key,
        metadata=metadata,
        check_results=event.check_results,
        data_version=event.data_version,
        tags=event.tags,
        value=event.value,
    )


def _place_of(dataset: JsonlDataset, partition: str | None) -> dict[str, Any]:
    uri = published_uri(dataset.location)
    if partition is None:
        return {"dagster/uri": uri}
    local = isinstance(dataset.location, Path) and uri.startswith("file:")
    shown = dg.MetadataValue.path(dataset.path) if local else dg.MetadataValue.text(uri)
    return {f"{METADATA_PREFIX}/path": shown}


def report_metadata(report: RunReport, partition: str | None = None) -> dict[str, Any]:
    """Return counts, failures, speed and location of a result, starting with the most important.

    Args:
        report: The report of the run.
        partition: The key of the partition, if the asset has partitions.
    """
    manifest = report.manifest
    metadata: dict[str, Any] = {
        f"{METADATA_PREFIX}/rows_in": manifest.rows_in,
        **_emitted(report),
        f"{METADATA_PREFIX}/rows_failed": manifest.failed,
        **resumed_metadata(report),
        **leaf_metadata(manifest),
        **count_metadata(manifest),
    }
    if manifest.seeds:  # a text, because the UI rounds large numbers
        seeds = {stage: str(seed) for stage, seed in manifest.seeds.items()}
        metadata[f"{METADATA_PREFIX}/seeds"] = dg.MetadataValue.json(seeds)
    if manifest.kept_from:
        runs = [run.get("run", "") for run in manifest.kept_from]
        metadata[f"{METADATA_PREFIX}/kept_from"] = ", ".join(dict.fromkeys(runs))
    if report.notes:
        metadata[f"{METADATA_PREFIX}/notes"] = "; ".join(report.notes)
    if report.error_path is not None:
        metadata[f"{METADATA_PREFIX}/errors"] = dg.MetadataValue.md(failures(report.error_path))
    if report.export is not None:
        metadata |= delivery_metadata(report.export)
    metadata[f"{METADATA_PREFIX}/seconds"] = round(report.seconds, 3)  # a number, for plots
    if report.seconds >= _LONG_SECONDS:
        metadata[f"{METADATA_PREFIX}/duration"] = duration(report.seconds)
    metadata[f"{METADATA_PREFIX}/records_per_second"] = round(report.records_per_second, 1)
    return metadata | _result_metadata(report, partition) | trace_metadata(report)


def _emitted(report: RunReport) -> dict[str, int | str]:
    """Return how many records the operator emitted and dropped; files are no records."""
    if report.lists_files:
        return {}
    manifest = report.manifest
    out = {f"{METADATA_PREFIX}/rows_out": manifest.rows_out}
    if manifest.new_records:
        return {**out, f"{METADATA_PREFIX}/new_records": manifest.made_text}
    return {**out, f"{METADATA_PREFIX}/rows_dropped": manifest.dropped}


def _result_metadata(report: RunReport, partition: str | None) -> dict[str, Any]:
    if report.lists_files and report.artefact is None:
        return {} if report.export is None else export_metadata(report.export, partition)
    if report.artefact is None:
        pictures = histogram_metadata(report.dataset, report.manifest.operator)
        return pictures | dataset_metadata(report.dataset, partition)
    return artefact_metadata(Artefact.at(report.artefact), partition)


def _preview_of(dataset: JsonlDataset) -> str:
    try:
        return preview(dataset.head(_PREVIEW_ROWS))
    except InputError as error:  # a file that the package did not write
        return cell(str(error))


def preview(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table with shortened values."""
    if not rows:
        return "_no rows_"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = columns[:_PREVIEW_COLUMNS]
    hidden = len(columns) - len(shown)
    note = f"and {counted(hidden, 'more columns')}" if hidden else ""
    return table(shown, [[row.get(name, "") for name in shown] for row in rows], note)


def resumed_metadata(report: RunReport) -> dict[str, Any]:
    """Return the number of resumed records and, if there are any, the runs that settled them.

    A single run is a link; several runs are listed by id, the latest last.
    """
    metadata: dict[str, Any] = {f"{METADATA_PREFIX}/rows_resumed": report.rows_resumed}
    if report.rows_resumed and report.resumed_from:
        metadata[f"{METADATA_PREFIX}/resumed_from"] = _runs(report.resumed_from)
    return metadata


def _runs(runs: tuple[str, ...]) -> dg.MetadataValue[Any]:
    if len(runs) == 1 and _is_dagsters(runs[0]):
        return dg.MetadataValue.dagster_run(runs[0])
    return dg.MetadataValue.text(", ".join(runs))


def _is_dagsters(run: str) -> bool:
    """Return whether a run id is Dagster's; ids of runs in plain Python are not UUIDs."""
    try:
        UUID(run)
    except ValueError:
        return False
    return True
