"""report_step: the asset with the report of a pipeline, an HTML file, after its last assets."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import PATH, REPORT, SIZE_BYTES
from dagster_dataops.assets.metadata.result_commands import view_metadata
from dagster_dataops.assets.runtime.resource import DataOpsResource, resource_of
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.pipelines.view.static_report import FILE_NAME, WrittenReport, write_report

_NAME: Final = "report"
_MOST_ROWS: Final = 50  # of the summary


def report_step(planned: PlannedPipeline) -> dg.AssetsDefinition:
    """Return the asset ``report``, which depends on the assets that no other one depends on.

    It has no partitions: its report shows all partitions that are materialized.

    Raises:
        PipelineDefinitionError: A node is called ``report``.
    """
    first = planned.plans[0]
    of_first = first.node_key if first.outputs else first.spec.key.path
    key = dg.AssetKey([*of_first[:-1], _NAME])
    if key in {spec.key for spec in planned.specs} | {planned.origin.key}:
        reason = f"the report of a pipeline is the asset {key.to_user_string()}; rename the node"
        raise PipelineDefinitionError(planned.graph.name, reason)
    condition = planned.options.get("automation_condition")

    @dg.asset(
        key=key,
        deps=_last_keys(planned.specs),
        group_name=first.spec.group_name,
        description=f"A report of pipeline {planned.title} as one HTML file.",
        kinds={"html"},
        required_resource_keys={planned.resource_key},
        automation_condition=None if isinstance(condition, Mapping) else condition,
    )
    def report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        dataops = resource_of(context, planned.resource_key)
        folder = dataops.folder(key.path).path
        places = _places(planned, dataops)
        report = write_report(planned.title, folder.parent, places, folder / FILE_NAME)
        return dg.MaterializeResult(metadata=_metadata(report, dataops.view_url))

    return report


def _places(planned: PlannedPipeline, dataops: DataOpsResource) -> list[Root]:
    """Return the folders of the nodes, and before them that of a source that is written."""
    folders = [plan.folder(dataops, None).root for plan in planned.plans]
    if isinstance(planned.origin.definition, dg.AssetsDefinition):
        folders.insert(0, dataops.folder(planned.origin.key.path).root)
    return folders


def _last_keys(specs: Iterable[dg.AssetSpec]) -> list[dg.AssetKey]:
    """Return the keys of the assets that no other one depends on."""
    known = list(specs)
    read = {dep.asset_key for spec in known for dep in spec.deps}
    return [spec.key for spec in known if spec.key not in read]


def _metadata(report: WrittenReport, view_url: str | None) -> dict[str, Any]:
    return {
        **view_metadata(view_url),
        PATH: dg.MetadataValue.path(report.path),
        REPORT: dg.MetadataValue.md(_summary(report)),
        SIZE_BYTES: report.path.stat().st_size,
    }


def _summary(report: WrittenReport) -> str:
    """Return a row for every node: the records in, out, dropped and failed."""
    fields = ("name", "rows_in", "out", "dropped", "failed")
    shown = report.nodes[:_MOST_ROWS]
    rows = [["" if node.get(field) is None else node[field] for field in fields] for node in shown]
    more = len(report.nodes) - len(rows)
    note = f"and {more} more" if more else ""
    return table(["node", "in", "out", "dropped", "failed"], rows, note)
