"""Metadata of records that earlier attempts settled."""

from typing import Any
from uuid import UUID

import dagster as dg

from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.execution.run_report import RunReport


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
    """Whether a run id is Dagster's; ids of runs in plain Python are not UUIDs."""
    try:
        UUID(run)
    except ValueError:
        return False
    return True
