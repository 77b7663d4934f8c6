"""build_preview_job: a whole pipeline over the first records of its source, nothing materialized.

Assets cannot hand previews on to one another: Dagster skips what depends on an asset that was not
materialized. So this is one op that runs the nodes one after the other, each over the preview of
those before it. As it is no asset job, no asset counts as being made, or as failed, while it runs.
"""

import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import dagster as dg
from pydantic import Field, SkipValidation, create_model

from dagster_dataops.assets.configs import checked, config_type_of
from dagster_dataops.assets.params import AliasedConfig
from dagster_dataops.assets.plan import AssetPlan, plan_assets
from dagster_dataops.assets.preview import observe_preview, preview_folder, run_preview
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import Source, SourceAsset, source_asset
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.assets.upstream import Upstream
from dagster_dataops.graph.graph import SOURCE
from dagster_dataops.operators.operator import Operator
from dagster_dataops.services.pipeline import Pipeline

_LIMIT = 10


class PreviewConfig(dg.Config):
    """How much of the source a preview takes."""

    limit: Annotated[int, SkipValidation] = Field(
        default=_LIMIT,
        description="The first so many records of the source. Model calls made for them are paid "
        "for; nothing is materialized.",
    )


def build_preview_job(
    ppl: Pipeline,
    *,
    source: Source,
    name: str = "",
    translator: DataOpsTranslator | None = None,
    resources: Mapping[str, Any] | None = None,
) -> dg.JobDefinition:
    """Return a job that previews the whole pipeline and materializes nothing.

    Every node is run over what came of the first records of the source in the nodes before it,
    and shown as an observation of its asset. ``limit`` and the operators' options are in the
    launchpad.

    Args:
        ppl: A complete pipeline.
        source: As for `build_operator_assets`. A function is called for its first records
            alone; of another asset, what it materialized last is loaded.
        name: The job's name; by default the pipeline's with ``_preview``.
        translator: The one that the assets were made with.
        resources: Must hold ``dataops`` unless the definitions around the job do.
    """
    graph = ppl.graph
    origin = source_asset(source, graph.name)
    plans = plan_assets(graph, origin, translator or DataOpsTranslator())
    title = graph.name or "dataops"
    config_type: Any = _config_type(plans, f"{title}Preview")

    @dg.op(name=f"preview_{title}", description=f"Previews pipeline {title}.")
    def _preview(
        context: dg.OpExecutionContext,
        config: config_type,
        dataops: DataOpsResource,
    ) -> None:
        operators = _operators(plans, config)  # all are checked before the first is run
        place = preview_folder(dataops.folder(origin.key.path))
        upstream = Upstream(place)
        upstream.add(origin.key, _source_records(context, source, origin, config.limit))
        results = {SOURCE: upstream.datasets}
        for plan in plans:
            folder = dataops.folder(plan.spec.key.path)
            inputs = [dataset for name in plan.node.inputs for dataset in results[name]]
            operator = operators[plan.node.name]
            report = run_preview(context, dataops, operator, inputs, folder, config.limit)
            observe_preview(context, plan.spec.key, report, config.limit)
            results[plan.node.name] = [report.dataset]
        upstream.clean_up()

    made = dg.GraphDefinition(
        name=name or f"{title}_preview",
        description=f"The first records of the source through every operator of {title}. "
        "Shown as observations of their assets; nothing is materialized.",
        node_defs=[_preview],
    )
    return made.to_job(resource_defs=resources, executor_def=dg.in_process_executor)


def _config_type(plans: Sequence[AssetPlan], title: str) -> type[PreviewConfig]:
    """Return a Config class with the options of every node that offers any."""
    fields: dict[str, Any] = {}
    stem = f"{max((plan.node.name for plan in plans), key=len)}_"  # no field is called as a node
    for number, plan in enumerate(plans):
        params = config_type_of(plan.node).model_fields.get("params")
        if params is not None:
            shown = Field(params.default, alias=plan.node.name, description=params.description)
            fields[f"{stem}{number}"] = (params.annotation, shown)
    if not fields:
        return PreviewConfig
    params_type: Any = create_model(f"{title}Params", __base__=AliasedConfig, **fields)
    default = Field(default=params_type(), description="Options of the operators, by node.")
    made: type[PreviewConfig] = create_model(
        f"{title}Config", __base__=PreviewConfig, params=(params_type, default)
    )
    return made


def _operators(plans: Sequence[AssetPlan], config: PreviewConfig) -> dict[str, Operator]:
    """Return every node's operator as configured.

    Raises:
        Failure: An option or the limit is refused.
    """
    if not config.limit or config.limit < 1:
        text = f"limit is {config.limit!r}; a preview takes at least 1 record"
        raise dg.Failure(text, allow_retries=False)
    by_node = {}
    if (params := getattr(config, "params", None)) is not None:
        for field, info in type(params).model_fields.items():
            by_node[info.alias] = {"params": getattr(params, field)}
    operators = {}
    for plan in plans:
        name = plan.node.name
        chosen = config_type_of(plan.node)(**by_node.get(name, {}))
        operators[name] = checked(name, plan.node.operator, chosen)
    return operators


def _source_records(
    context: dg.OpExecutionContext, source: Source, origin: SourceAsset, limit: int
) -> object:
    """Return the first records of the source, or something that they are the first of."""
    if origin.path is not None:
        return origin.path
    if inspect.isroutine(source):
        return itertools.islice(source(), limit)
    try:
        location = context.repository_def
    except Exception as error:  # Dagster's CheckError, which it exports nowhere
        text = (
            f"the records of asset {origin.key.to_user_string()} are loaded through its code "
            "location, and execute_in_process knows of none; launch this job in the UI, or by dg"
        )
        raise dg.Failure(text, allow_retries=False) from error
    return location.load_asset_value(origin.key, instance=context.instance)
