"""Previews: run an operator over the first records of its input, without changing its result.

A preview has its own folder, ``.preview`` in the folder of the asset, which the next preview
overwrites. Dagster gets an observation: nothing is materialized, and result, manifest, error file
and checkpoint are unchanged. The operator is really called, at the full cost of its calls.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import dagster as dg
import orjson

from dagster_dataops.assets.launchpad.operator_config import limit_of
from dagster_dataops.assets.metadata.materialization import (
    outcome_metadata,
    preview,
    thumbnail_metadata,
)
from dagster_dataops.assets.metadata.metadata_keys import (
    ERRORS,
    PREVIEW_ERRORS,
    PREVIEW_ESTIMATE,
    PREVIEW_LIMIT,
    PREVIEW_PATH,
    PREVIEW_PROMPT,
    PREVIEW_RECORDS,
    PREVIEW_ROWS_DROPPED,
    PREVIEW_ROWS_FAILED,
    PREVIEW_ROWS_IN,
    PREVIEW_ROWS_OUT,
    PREVIEW_THUMBNAILS,
    ROWS_DROPPED,
    ROWS_FAILED,
    ROWS_IN,
)
from dagster_dataops.assets.metadata.prompt_metadata import prompt_metadata
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, run_of
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, published
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import first_lines
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.execution.runners.given_stream import of_first
from dagster_dataops.foundation.parts import has_model_operators
from dagster_dataops.foundation.places.bucket import local_path, published_file
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator, exporting, reconfigured
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

_FOLDER: Final = ".preview"  # cannot be an asset's folder, where a leading dot is escaped
_KEYS: Final = {
    ROWS_IN: PREVIEW_ROWS_IN,
    ROWS_DROPPED: PREVIEW_ROWS_DROPPED,
    ROWS_FAILED: PREVIEW_ROWS_FAILED,
    ERRORS: PREVIEW_ERRORS,
}
_ESTIMATED_BY: Final = 50  # records
_SHOWN_RECORDS: Final = 20
_LOGGED_RECORDS: Final = 3
_LOGGED_CHARACTERS: Final = 500


def preview_folder(folder: NodeFolder) -> NodeFolder:
    """Return the folder for previews of an asset."""
    outputs = {name: preview_folder(output) for name, output in folder.outputs.items()}
    return replace(folder, path=folder.path / _FOLDER, outputs=outputs)


def earlier_preview(
    context: StepContext, dataops: DataOpsResource, key: dg.AssetKey, partition: str | None
) -> JsonlDataset | None:
    """Return the preview of an asset from the current run; ``None`` if there is none.

    A preview of the partition comes before one of the whole asset.
    """
    for each in dict.fromkeys((partition, None)):
        published_preview = published(preview_folder(dataops.folder(key.path, each)))
        if published_preview is not None and published_preview[1].run == run_of(context).run_id:
            return published_preview[0]
    return None


def _is_preview(dataset: JsonlDataset) -> bool:
    file = published_file(dataset.location)
    return file is not None and Path(file).parent.name == _FOLDER


def limit_over(inputs: Sequence[JsonlDataset], limit: int | None) -> int:
    """Return the number of records that an op previews; 0 for a run without preview.

    An op downstream of a preview also runs as a preview, over all its records.
    """
    of_previews = any(map(_is_preview, inputs))
    return limit_of(limit) or (sys.maxsize if of_previews else 0)


def run_preview(
    context: StepContext,
    dataops: DataOpsResource,
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
    limit: int,
) -> RunReport:
    """Run ``operator`` over the first ``limit`` records of every input, in the preview folder.

    A preview does not stop early, even if every record fails, because it should show the failures.
    """
    place = preview_folder(folder)
    heads = [
        first_lines(dataset, place.path / f"{place.name}_head_{number}.jsonl", limit)
        for number, dataset in enumerate(inputs, 1)
    ]
    first = exporting(of_first(operator, limit), None)
    first = reconfigured(first, {}, ExecutionSettings(stop_after_failures=0))
    return dataops.run_operator(context, first, heads, place, ResumePolicy.NEVER)


def model_preview(
    dataops: DataOpsResource,
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
) -> dict[str, Any]:
    """Return the estimate and the first prompt of an operator that asks models, else nothing.

    There is no estimate from an input that is a preview itself.
    """
    prompt = prompt_metadata(operator, inputs, PREVIEW_PROMPT)
    if len(inputs) != 1 or _is_preview(inputs[0]):
        return prompt
    estimate = _estimate_of(dataops, operator, inputs[0], folder)
    return {PREVIEW_ESTIMATE: estimate, **prompt} if estimate else prompt


def _estimate_of(
    dataops: DataOpsResource, operator: Operator, whole: JsonlDataset, folder: NodeFolder
) -> str:
    """Return the cost of the model calls for a whole input, in words; empty without such calls."""
    if not has_model_operators():
        return ""
    from dagster_dataops.models.dry_run import calls_models, estimates_of

    graph = OperatorGraph.of("", [OperatorNode("node", operator, (SOURCE,))])
    if not calls_models(graph):
        return ""
    try:
        estimates = estimates_of(graph, whole, _ESTIMATED_BY, dataops.clients, lambda _: folder)
    except DataOpsError as error:
        return f"no estimate: {error}"
    estimate = estimates.get("node")
    if estimate is None:
        return ""
    cost = estimate.cost
    return (
        f"all records of the input: {counted(estimate.calls, 'calls')}, "
        f"${cost.expected:,.4f} expected, ${cost.high:,.4f} at most"
    )


def observe_preview(
    context: StepContext,
    key: dg.AssetKey,
    report: RunReport,
    limit: int,
    partition: str | None = None,
    asked: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Log a preview as an observation of its asset and as text.

    ``asked`` is what `model_preview` returned; it comes first.
    """
    text = f"A preview of the first {counted(limit, 'records')}; the published result is unchanged."
    context.log_event(
        dg.AssetObservation(
            asset_key=key,
            description=text,
            metadata={**asked, **preview_metadata(report, limit)},
            partition=partition,
        )
    )
    manifest = report.manifest
    estimate = asked.get(PREVIEW_ESTIMATE)
    out = f"{manifest.rows_out:,} out, {manifest.dropped:,} dropped"
    if manifest.new_records:
        out = manifest.made_text
    first = f"{key.to_user_string()}: {estimate}\n" if estimate else ""
    said = (
        f"{first}{key.to_user_string()}: preview of {counted(manifest.rows_in, 'records')}: "
        f"{out}, {manifest.failed:,} failed. "
        f"Nothing was materialized.{_records_of(report)}"
    )
    context.log.info(said)


def preview_metadata(report: RunReport, limit: int) -> dict[str, Any]:
    """Return the metadata of a preview, with keys that differ from those of results.

    With equal keys, Dagster would show and plot the numbers as those of the result.
    """
    outcome, location = outcome_metadata(report), report.dataset.location
    rows = report.dataset.sample(_SHOWN_RECORDS)
    return {
        PREVIEW_LIMIT: limit,
        PREVIEW_RECORDS: dg.MetadataValue.md(preview(rows)),
        **thumbnail_metadata(location, rows, PREVIEW_THUMBNAILS),
        PREVIEW_ROWS_OUT: report.manifest.rows_out,
        **{key: outcome[name] for name, key in _KEYS.items() if name in outcome},
        PREVIEW_PATH: dg.MetadataValue.path(str(local_path(location) or location)),
    }


def _records_of(report: RunReport) -> str:
    records = report.dataset.sample(_LOGGED_RECORDS)
    lines = [orjson.dumps(record).decode()[:_LOGGED_CHARACTERS] for record in records]
    return "".join(f"\n{line}" for line in lines)
