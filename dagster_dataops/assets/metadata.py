"""RunReport -> what the asset page and the run page show of a materialization."""

import re
from typing import Any, Final

import dagster as dg
import orjson

from dagster_dataops.assets.failed_records import failures
from dagster_dataops.assets.translator import METADATA_PREFIX
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError
from dagster_dataops.execution.report import RunReport

_PREVIEW_ROWS: Final = 5
_PREVIEW_COLUMNS: Final = 8
_CELL_CHARACTERS: Final = 120
_MARKDOWN: Final = re.compile(r"([\\`*_~\[\]<>&|!#])")  # what would format, link or load something


def dataset_metadata(dataset: JsonlDataset) -> dict[str, Any]:
    """Return row count, preview of the first rows, path and size."""
    counted = {} if dataset.rows is None else {"dagster/row_count": dataset.rows}
    return {
        **counted,
        f"{METADATA_PREFIX}/preview": dg.MetadataValue.md(_preview_of(dataset)),
        f"{METADATA_PREFIX}/path": dg.MetadataValue.path(dataset.path),
        "dagster/size_bytes": dataset.size_bytes,
    }


def report_metadata(report: RunReport) -> dict[str, Any]:
    """Return what became of the records, what failed, how fast, where: the first things first."""
    manifest = report.manifest
    metadata: dict[str, Any] = {
        f"{METADATA_PREFIX}/rows_in": manifest.rows_in,
        f"{METADATA_PREFIX}/rows_out": manifest.rows_out,
        f"{METADATA_PREFIX}/rows_dropped": manifest.dropped,
        f"{METADATA_PREFIX}/rows_failed": manifest.failed,
        f"{METADATA_PREFIX}/rows_resumed": manifest.resumed,
    }
    if manifest.kept_from:
        runs = [run.get("run", "") for run in manifest.kept_from]
        metadata[f"{METADATA_PREFIX}/kept_from"] = ", ".join(dict.fromkeys(runs))
    if report.notes:
        metadata[f"{METADATA_PREFIX}/notes"] = "; ".join(report.notes)
    if report.error_path is not None:
        metadata[f"{METADATA_PREFIX}/errors"] = dg.MetadataValue.md(failures(report.error_path))
        metadata[f"{METADATA_PREFIX}/error_path"] = dg.MetadataValue.path(report.error_path)
    metadata[f"{METADATA_PREFIX}/seconds"] = round(report.seconds, 3)
    metadata[f"{METADATA_PREFIX}/records_per_second"] = round(report.records_per_second, 1)
    return metadata | dataset_metadata(report.dataset)


def _preview_of(dataset: JsonlDataset) -> str:
    try:
        return preview(dataset.head(_PREVIEW_ROWS))
    except InputError as error:  # a file that others wrote
        return _cell(str(error))


def preview(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table, long values cut."""
    if not rows:
        return "_no rows_"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = columns[:_PREVIEW_COLUMNS]
    cells = [[_cell(row[name]) if name in row else "" for name in shown] for row in rows]
    table = _table([_cell(name) for name in shown], cells)
    hidden = len(columns) - len(shown)
    return f"{table}\n\n_and {hidden} more columns_" if hidden else table


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    text = " ".join(text.split())
    if len(text) > _CELL_CHARACTERS:
        text = f"{text[:_CELL_CHARACTERS]}..."
    return _MARKDOWN.sub(r"\\\1", text)
