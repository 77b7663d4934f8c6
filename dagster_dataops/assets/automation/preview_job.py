"""build_preview_job: run a whole pipeline over the first records of its source.

Nothing is materialized. Dagster skips an asset whose upstream asset was not materialized, so the
steps of the assets cannot pass previews to each other. Therefore one op runs the nodes one after
the other. The job is not an asset job, so no asset is shown as running or failed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

import dagster as dg

from dagster_dataops.assets.automation.preview_source import PreviewSource
from dagster_dataops.assets.inputs.artefact_inputs import with_loaded
from dagster_dataops.assets.inputs.step_inputs import StepInputs
from dagster_dataops.assets.launchpad.config_schema import LazyField
from dagster_dataops.assets.launchpad.operator_config import checked
from dagster_dataops.assets.launchpad.params import shown_params
from dagster_dataops.assets.metadata.metadata_keys import PREVIEW_PROMPT
from dagster_dataops.assets.metadata.prompt_metadata import prompt_metadata
from dagster_dataops.assets.planning.asset_options import AssetOptions
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepEvent, run_of
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline, planned_pipeline
from dagster_dataops.assets.steps.preview_step import (
    observe_preview,
    preview_folder,
    run_preview,
)
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.assets.steps.step_body import step_function
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.pipelines.graph.operator_node import SOURCE
from dagster_dataops.pipelines.pipeline import Pipeline

_LIMIT: Final = 10
_LIMIT_TEXT: Final = (
    "Number of records to take from the source. Model calls of a preview cost the usual price. "
    "Nothing is materialized."
)


@takes_options(AssetOptions)
def build_preview_job(
    ppl: Pipeline,
    *,
    source: Source,
    name: str = "",
    resources: Mapping[str, Any] | None = None,
    **options: Unpack[AssetOptions],
) -> dg.JobDefinition:
    """Return a job that previews the whole pipeline and materializes nothing.

    Every node runs over the preview of its inputs, beginning with the first records of the source.
    The preview of a node is shown as an observation of its asset. The launchpad has ``limit``, the
    operators' options and, with partitions, ``partition``: by default the last partition whose
    source exists.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`. From a function, only the first records are read. From
            another asset, the last materialization is loaded.
        name: Name of the job; by default the pipeline's name followed by ``_preview``.
        resources: Resources of the job. ``dataops`` is required, unless the definitions that
            contain the job provide it.
        **options: See `AssetOptions`; give the same options as for the assets.
    """
    planned = planned_pipeline(ppl, source, options)
    return preview_job(planned, source, name=name, resources=resources)


def preview_job(
    planned: PlannedPipeline,
    source: Source,
    *,
    name: str = "",
    resources: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> dg.JobDefinition:
    """Return the job of a planned pipeline; arguments as `build_preview_job`, and tags."""
    first = PreviewSource.of(planned, source)
    origin, plans, title = planned.origin, planned.plans, planned.title

    def run(context: dg.OpExecutionContext, dataops: DataOpsResource) -> None:
        limit = context.op_config["limit"]
        operators = _operators(plans, context.op_config)  # check all before the first run
        partition = first.partition(context, dataops)
        place = preview_folder(dataops.folder(origin.key.path, partition))
        with StepInputs(place, 1, run_of(context).run_id) as upstream:
            upstream.add(origin.key, [first.records(context, dataops, limit, partition)])
            results = {SOURCE: upstream.datasets}
            for plan in plans:
                part = None if plan.spec.partitions_def is None else partition
                folder = plan.folder(dataops, part)
                inputs = [dataset for name in plan.node.inputs for dataset in results[name]]
                folders = {each: NodeFolder.of_result(results[each][0]) for each in plan.artefacts}
                operator = with_loaded(plan.node.name, operators[plan.node.name], folders)
                asked = prompt_metadata(operator, inputs, PREVIEW_PROMPT)
                report = run_preview(context, dataops, operator, inputs, folder, limit)
                previews = zip(plan.results.items(), report.results.values(), strict=True)
                for (result, spec), preview in previews:
                    observe_preview(context, spec.key, preview, limit, part, asked)
                    results[result] = [preview.dataset]

    _preview = dg.op(
        name=f"preview_{title}",
        description=f"Previews pipeline {title}.",
        out={},
        config_schema=LazyField(lambda: dg.Field({**_schema(plans), **first.fields()})),
    )(step_function(planned.body, lambda _, __: _Preview(run)))
    job = dg.GraphDefinition(
        name=name or f"{title}_preview",
        description=f"The first records of the source through every operator of {title}. "
        "Shown as observations of their assets; nothing is materialized.",
        node_defs=[_preview],
    )
    return job.to_job(resource_defs=resources, executor_def=dg.in_process_executor, tags=tags)


@dataclass(frozen=True)
class _Preview:
    """Work of a step that calls a function, and yields no events."""

    function: Callable[[dg.OpExecutionContext, DataOpsResource], None]

    def run(self, context: Any, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Call the function."""
        self.function(context, dataops)
        yield from ()


def _schema(plans: Sequence[AssetPlan]) -> dict[str, dg.Field]:
    """Return the fields ``limit`` and ``params``: the options of every node that has any."""
    operators = [(plan.node.name, plan.node.operator) for plan in plans]
    params = {
        name: shown.field(operator.__dataops__.spec.reference, default_value=shown.values)
        for name, operator in operators
        if (shown := shown_params(operator)) is not None
    }
    schema = {"limit": dg.Field(int, default_value=_LIMIT, description=_LIMIT_TEXT)}
    if params:
        schema["params"] = dg.Field(params, description="Options, by node.")
    return schema


def _operators(plans: Sequence[AssetPlan], config: Mapping[str, Any]) -> dict[str, Operator]:
    """Return the operator of every node with the options of the launch."""
    if config["limit"] < 1:
        text = f"limit is {config['limit']}; a preview takes at least 1 record"
        raise dg.Failure(text, allow_retries=False)
    operators = {}
    for plan in plans:
        name = plan.node.name
        params = config.get("params", {}).get(name)
        operators[name] = checked(name, plan.node.operator, {"params": params})
    return operators
