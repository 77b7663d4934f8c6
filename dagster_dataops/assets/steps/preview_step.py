"""Previews: an operator over the first records of its input, beside the result, never in its place.

A preview has a folder of its own, ``.preview`` in the asset's, used again by the next one. Dagster
is told of it by an observation: nothing is materialized, and no result, manifest, error file or
checkpoint is touched. The operator is really called: what its calls cost is paid for.
"""

import sys
from collections.abc import Sequence
from typing import Any, Final

import dagster as dg
import orjson

from dagster_dataops.assets.inputs.step_inputs import StepInputs
from dagster_dataops.assets.launchpad.operator_config import limit_of
from dagster_dataops.assets.metadata.materialization import preview, report_metadata
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, published
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import first_lines
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.execution.runners.given_stream import of_first
from dagster_dataops.operators.operator import Operator, exporting, reconfigured
from dagster_dataops.operators.settings import ExecutionSettings

_FOLDER: Final = ".preview"  # no asset's: a leading dot is escaped in those
_KEPT: Final = ("rows_in", "rows_out", "rows_dropped", "rows_failed", "errors")
_SHOWN_RECORDS: Final = 20
_LOGGED_RECORDS: Final = 3
_LOGGED_CHARACTERS: Final = 500


def preview_folder(folder: NodeFolder) -> NodeFolder:
    """Return where previews of an asset are."""
    return NodeFolder(folder.path / _FOLDER, folder.name)


def previewed_before(
    context: StepContext, dataops: DataOpsResource, key: dg.AssetKey, partition: str | None = None
) -> JsonlDataset | None:
    """Return what a preview in this very run made of an asset, ``None`` if there was none."""
    found = published(preview_folder(dataops.folder(key.path, partition)))
    return found[0] if found and found[1].run == context.run.run_id else None


def limit_over(inputs: Sequence[JsonlDataset], limit: int | None) -> int:
    """Return how many records an op previews, 0 for none: of previews there are only previews."""
    of_previews = any(dataset.path.parent.name == _FOLDER for dataset in inputs)
    return limit_of(limit) or (sys.maxsize if of_previews else 0)


class Preview:
    """Previews planned operators in one step.

    Args:
        context: Of the step, which then yields no result: Dagster skips the steps that need it.
        dataops: Where and how.
        limit: How many records of every input, at least 1.
    """

    def __init__(self, context: StepContext, dataops: DataOpsResource, limit: int) -> None:
        self._context = context
        self._dataops = dataops
        self._limit = limit

    def before(self, key: dg.AssetKey, partition: str | None) -> list[JsonlDataset]:
        """Return what was previewed of an upstream asset in this run: that is the input then."""
        for place in dict.fromkeys((partition, None)):
            found = previewed_before(self._context, self._dataops, key, place)
            if found is not None:
                return [found]
        return []

    def run(
        self,
        key: dg.AssetKey,
        operator: Operator,
        inputs: Sequence[tuple[dg.AssetKey, Sequence[object]]],
        partition: str | None,
    ) -> None:
        """Preview one operator, as configured for this run, over the first records of its inputs.

        Args:
            key: Of its asset.
            operator: What to run.
            inputs: Key of every input with its parts, as `StepInputs.add` takes them.
            partition: Of the asset.
        """
        folder = self._dataops.folder(key.path, partition)
        run = self._context.run.run_id
        with StepInputs(preview_folder(folder), len(inputs), run) as upstream:
            for name, parts in inputs:
                upstream.add(name, parts)
            report = run_preview(
                self._context, self._dataops, operator, upstream.datasets, folder, self._limit
            )
        observe_preview(self._context, key, report, self._limit, partition)


def run_preview(
    context: StepContext,
    dataops: DataOpsResource,
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
    limit: int,
) -> RunReport:
    """Run ``operator`` over the first ``limit`` records of every input, beside its result.

    Failures are what a preview is to show: it does not stop, even if every record fails.
    """
    place = preview_folder(folder)
    heads = [
        first_lines(dataset, place.path / f"{place.name}_head_{number}.jsonl", limit)
        for number, dataset in enumerate(inputs, 1)
    ]
    first = exporting(of_first(operator, limit), None)
    first = reconfigured(first, {}, ExecutionSettings(stop_after_failures=0))
    return dataops.run_operator(context, first, heads, place, ResumePolicy.NEVER)


def observe_preview(
    context: StepContext,
    key: dg.AssetKey,
    report: RunReport,
    limit: int,
    partition: str | None = None,
) -> None:
    """Show a preview: as an observation of its asset, and in the log."""
    text = f"A preview of the first {limit:,} records; the published result is untouched."
    context.log_event(
        dg.AssetObservation(
            asset_key=key,
            description=text,
            metadata=preview_metadata(report, limit),
            partition=partition,
        )
    )
    manifest = report.manifest
    said = (
        f"{key.to_user_string()}: preview of {manifest.rows_in:,} records: "
        f"{manifest.rows_out:,} out, {manifest.dropped:,} dropped, {manifest.failed:,} failed. "
        f"Nothing was materialized.{_records_of(report)}"
    )
    context.log.info(said)


def preview_metadata(report: RunReport, limit: int) -> dict[str, Any]:
    """Return what is shown of a preview, under names that are no result's.

    Dagster's own names would count as the result's, and ours would be plotted with it.
    """
    shown = {name.partition("/")[2]: value for name, value in report_metadata(report).items()}
    table = dg.MetadataValue.md(preview(report.dataset.sample(_SHOWN_RECORDS)))
    kept = {f"preview/{name}": shown[name] for name in _KEPT if name in shown}
    path = dg.MetadataValue.path(report.dataset.path)
    return {"preview/limit": limit, "preview/records": table, **kept, "preview/path": path}


def _records_of(report: RunReport) -> str:
    records = report.dataset.sample(_LOGGED_RECORDS)
    lines = [orjson.dumps(record).decode()[:_LOGGED_CHARACTERS] for record in records]
    return "".join(f"\n{line}" for line in lines)
