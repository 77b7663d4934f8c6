"""Pages with facts about a node: what it changed, and the numbers of its columns."""

from typing import Any, Final

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import spread_sample
from dagster_dataops.pipelines.reporting.changed_records import changed_records
from dagster_dataops.pipelines.reporting.distributions import (
    MOST_COLUMNS,
    ColumnFacts,
    add_record,
    columns_of,
)
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork
from dagster_dataops.pipelines.view.records.viewed_file import indexed
from dagster_dataops.pipelines.view.server.page_request import PageRequest
from dagster_dataops.pipelines.view.server.paging import waiting
from dagster_dataops.pipelines.view.shown.histograms import shown_columns
from dagster_dataops.records import decode

_SAMPLE: Final = 2000  # records


def changes_page(request: PageRequest) -> dict[str, Any]:
    """Return some records that a node changed, chosen evenly over its input."""
    node, manifest = request.node, request.node.manifest
    if manifest is None:
        return {"looked": 0, "changed": 0, "rows": [], "note": node.state, "refresh": 0}
    key = ("changes", node.key, manifest.fingerprint, manifest.modified_ns)

    def find(_: BackgroundWork) -> dict[str, Any]:
        return changed_records(node, manifest)

    work = request.view.works.begun(key, find)
    if not work.ready or work.error:
        return {"looked": 0, "changed": 0, "rows": []} | waiting(work)
    return {"refresh": 0, **work.result}


def numbers_page(request: PageRequest) -> dict[str, Any]:
    """Return the distributions of the columns of a result, from a sample or from all records."""
    ours = request.node.is_published(request.output)
    if not request.query.get("all"):
        sample = spread_sample(JsonlDataset(request.location, 0), _SAMPLE)
        return _numbers(columns_of(sample.records), len(sample.records), whole=sample.whole)
    with indexed(request.location, request.view.works, ours=ours) as file:
        if file.index is None:
            return _numbers({}, 0, whole=True) | waiting(file.work)
        total = file.index.record_count
        location, state = file.location, file.state

        def count(work: BackgroundWork) -> tuple[dict[str, ColumnFacts], int]:
            columns: dict[str, ColumnFacts] = {}
            counted = 0
            with indexed(location, request.view.works, ours=ours) as again:
                for block in again.blocks():
                    for line in block.lines():
                        counted += _add(columns, line)
                    work.advance(block.end, total)
            return columns, counted

        work = request.view.works.begun(("numbers", str(location), state), count)
    if not work.ready or work.error:
        return _numbers({}, 0, whole=True) | waiting(work)
    columns, counted = work.result
    return _numbers(columns, counted, whole=True) | {"left": total - counted}


def _add(columns: dict[str, ColumnFacts], line: bytes) -> bool:
    """Count the values of a line; return whether it is a record."""
    try:
        record = decode(line)
    except ValueError:
        return False
    add_record(columns, record)
    return True


def _numbers(columns: dict[str, ColumnFacts], records: int, *, whole: bool) -> dict[str, Any]:
    return {
        "columns": shown_columns(columns),
        "most_columns": MOST_COLUMNS,
        "records": records,
        "left": 0,
        "whole": whole,
        "refresh": 0,
    }
