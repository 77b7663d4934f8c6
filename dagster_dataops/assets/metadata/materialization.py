"""Metadata of materializations, made from run reports and datasets."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
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
from dagster_dataops.assets.metadata.metadata_keys import (
    ERRORS,
    KEPT_FROM,
    NOTES,
    PARTITION_ROW_COUNT,
    PATH,
    PREVIEW,
    RECORDS_PER_SECOND,
    RESUMED_FROM,
    ROW_COUNT,
    ROWS_DROPPED,
    ROWS_FAILED,
    ROWS_IN,
    ROWS_RESUMED,
    SEEDS,
    SIZE_BYTES,
    THUMBNAILS,
    URI,
)
from dagster_dataops.assets.metadata.record_counts import count_metadata, drop_metadata
from dagster_dataops.assets.metadata.result_commands import difference_metadata, trace_metadata
from dagster_dataops.checkpoints.folder.manifest import Manifest, published_uri
from dagster_dataops.datasets.artefact import Artefact
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.file_contents import is_reference
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.datasets.file_values.result_roots import use_roots_above
from dagster_dataops.datasets.file_values.thumbnails import Thumbnail, thumbnails
from dagster_dataops.errors import FileReferenceError, InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.quantities import counted

if TYPE_CHECKING:
    from dagster_dataops.execution.run_report import RunReport

_PREVIEW_ROWS: Final = 5
_PREVIEW_COLUMNS: Final = 8
_THUMBNAILS: Final = 10


def dataset_metadata(dataset: JsonlDataset, partition: str | None = None) -> dict[str, Any]:
    """Return row count, preview of the first rows, location and size.

    The location is in Dagster's own key if possible. A path value would widen the metadata column
    of the asset page and narrow all other values.

    With a ``partition``, the row count counts the partition only.
    """
    count = ROW_COUNT if partition is None else PARTITION_ROW_COUNT
    counted = {} if dataset.rows is None else {count: dataset.rows}
    return {
        **counted,
        **_first_records(dataset),
        **_place_of(dataset, partition),
        SIZE_BYTES: dataset.size_bytes,
    }


def _place_of(dataset: JsonlDataset, partition: str | None) -> dict[str, Any]:
    uri = published_uri(dataset.location)
    if partition is None:
        return {URI: uri}
    local = isinstance(dataset.location, Path)
    shown = dg.MetadataValue.path(dataset.path) if local else dg.MetadataValue.text(uri)
    return {PATH: shown}


def report_metadata(report: "RunReport", partition: str | None = None) -> dict[str, Any]:
    """Return counts, failures, speed and location of a result, starting with the most important.

    Nothing is said twice: the number of emitted records is Dagster's row count, and Dagster shows
    the duration of the step.
    """
    return {
        **outcome_metadata(report),
        **({NOTES: "; ".join(report.notes)} if report.notes else {}),
        **_result_metadata(report, partition),
        **difference_metadata(report),
        **trace_metadata(report),
        **leaf_metadata(report.manifest),
        **count_metadata(report.manifest),
        **_delivered(report),
        RECORDS_PER_SECOND: round(report.records_per_second, 1),
        **_made_from(report.manifest),
    }


def outcome_metadata(report: "RunReport") -> dict[str, Any]:
    """Return what became of the records: counts, drops by reason and failures by exception."""
    manifest = report.manifest
    counts_drops = not report.lists_files and not manifest.new_records
    errors = None if report.error_path is None else failures(report.error_path)
    return {
        ROWS_IN: manifest.rows_in,
        **({ROWS_DROPPED: manifest.dropped} if counts_drops else {}),
        ROWS_FAILED: manifest.failed,
        **resumed_metadata(report),
        **drop_metadata(manifest),
        **({} if errors is None else {ERRORS: dg.MetadataValue.md(errors)}),
    }


def _delivered(report: "RunReport") -> dict[str, Any]:
    """Return the metadata of the export of a result; an asset that is an export has its own."""
    if report.export is None or report.lists_files:
        return {}
    return delivery_metadata(report.export)


def _made_from(manifest: Manifest) -> dict[str, Any]:
    """Return seeds, as texts because the UI rounds large numbers, and runs whose records stay."""
    metadata: dict[str, Any] = {}
    if manifest.seeds:
        seeds = {stage: str(seed) for stage, seed in manifest.seeds.items()}
        metadata[SEEDS] = dg.MetadataValue.json(seeds)
    if manifest.kept_from:
        runs = [run.get("run", "") for run in manifest.kept_from]
        metadata[KEPT_FROM] = ", ".join(dict.fromkeys(runs))
    return metadata


def _result_metadata(report: "RunReport", partition: str | None) -> dict[str, Any]:
    if report.lists_files and report.artefact is None:
        return {} if report.export is None else export_metadata(report.export, partition)
    if report.artefact is None:
        pictures = histogram_metadata(report.dataset, report.manifest.operator)
        return pictures | dataset_metadata(report.dataset, partition)
    return artefact_metadata(Artefact.at(report.artefact), partition)


def _first_records(dataset: JsonlDataset) -> dict[str, Any]:
    """Return the preview of the first records, and their images."""
    try:
        rows = dataset.head(_PREVIEW_ROWS)
    except InputError as error:  # a file that the package did not write
        return {PREVIEW: dg.MetadataValue.md(cell(str(error)))}
    return {
        **thumbnail_metadata(dataset.location, rows, THUMBNAILS),
        PREVIEW: dg.MetadataValue.md(preview(rows)),
    }


def thumbnail_metadata(
    result: Location, rows: Sequence[dict[str, Any]], key: str
) -> dict[str, Any]:
    """Return the images that the first five rows of a result name; empty if they name none."""
    use_roots_above(result)
    pictures = thumbnails(rows[:_PREVIEW_ROWS], _THUMBNAILS)
    return {key: dg.MetadataValue.md(_pictures(pictures))} if pictures else {}


def _pictures(pictures: list[Thumbnail]) -> str:
    """Return a Markdown table of pictures, with a column for each record: five fit in a window."""
    records = list(dict.fromkeys(picture.row for picture in pictures))
    columns = dict.fromkeys(picture.column for picture in pictures)
    rows = [
        [cell(column), *(_pictures_of(pictures, row, column) for row in records)]
        for column in columns
    ]
    lines = [["record", *(str(row + 1) for row in records)], ["---"] * (len(records) + 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _pictures_of(pictures: list[Thumbnail], row: int, column: str) -> str:
    return " ".join(
        f"![]({picture.url})"
        for picture in pictures
        if (picture.row, picture.column) == (row, column)
    )


def preview(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table with shortened values."""
    if not rows:
        return "_no rows_"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = columns[:_PREVIEW_COLUMNS]
    hidden = len(columns) - len(shown)
    note = f"and {counted(hidden, 'more columns')}" if hidden else ""
    return table(shown, [[_shown(row.get(name, "")) for name in shown] for row in rows], note)


def _shown(value: object) -> object:
    """Return name and size of the file for a reference, which is long; else the value unchanged."""
    if not is_reference(value):
        return value
    try:
        reference = FileReference.of(value)
    except FileReferenceError:
        return value
    if reference.to_json() != value:  # it has further keys
        return value
    name = reference.name
    if name in (reference.digest or ""):  # an operator has made it
        name = (reference.media_type or "a file").rpartition("/")[2]
    return name if reference.size is None else f"{name}, {_size(reference.size)}"


def _size(count: int) -> str:
    """Return a number of bytes as a short text."""
    kilobytes = count / 1000
    if kilobytes < 1:
        return f"{count} B"
    return f"{kilobytes:.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1000:,.1f} MB"


def resumed_metadata(report: "RunReport") -> dict[str, Any]:
    """Return the number of resumed records and the runs that settled them, if there are any.

    A single run is a link; several runs are listed by id, the latest last.
    """
    if not report.rows_resumed:
        return {}
    metadata: dict[str, Any] = {ROWS_RESUMED: report.rows_resumed}
    if report.resumed_from:
        metadata[RESUMED_FROM] = _runs(report.resumed_from)
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
