"""build_operator_assets: a pipeline as assets, in a step an operator or in one step for all."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import dagster as dg

from dagster_dataops.assets.error_rate import ErrorRateCheck, ErrorRates
from dagster_dataops.assets.operator_step import StepOptions, operator_step
from dagster_dataops.assets.options import AssetOptions, Automation
from dagster_dataops.assets.pipeline_plan import PlannedPipeline, plan_pipeline
from dagster_dataops.assets.pipeline_step import pipeline_steps
from dagster_dataops.assets.pools import common_pool, pools_by_node
from dagster_dataops.assets.sources import Source
from dagster_dataops.assets.stream_source import StreamSource
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.services.pipeline import Pipeline

Layout: TypeAlias = Literal["steps", "single_step"]


def build_operator_assets(  # noqa: PLR0913 - keywords, each documented
    ppl: Pipeline,
    *,
    source: Source,
    translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    layout: Layout = "steps",
    pools: Mapping[str, str] | None = None,
    partitions: dg.PartitionsDefinition | None = None,
    unpartitioned: Collection[str] = (),
    allow_missing_partitions: bool = False,
    backfill_policy: dg.BackfillPolicy | None = None,
    automation: Automation | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    root: Path | None = None,
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
    stream_name: str = "",
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return one asset a node, each after those it depends on, and the source's if it is ours.

    The definitions they go into need the resources ``dataops`` (`DataOpsResource`) and
    ``dataops_io`` (`DataOpsIOManager`); `build_definitions` adds them.

    Args:
        ppl: A complete pipeline.
        source: Where its records come from: the path of a jsonl file, a function that yields
            dicts, or an upstream asset, whatever IO manager stores it: a list of dicts or a
            DataFrame serves as well as a handle of ours. Or a stream (`DataPipeline`), a function
            annotated to return one, or what has a ``name`` and a method ``stream``: an asset
            that writes its items, and goes on within them after a kill. A URL and a compressed
            file are read so as well. Or several of these assets and files, as by
            ``combine.sample([...])``.
        translator: Keys, groups and descriptions.
        retry_policy: Of every step; a retry goes on where the attempt stopped.
        layout: ``steps`` gives every operator a step of its own, which an executor may run beside
            others or elsewhere. ``single_step`` runs the selected operators one after the other
            in one step, each materialized as it finishes: it saves the start of a process a step
            where the executor starts any. Keys, specs, bytes and metadata are the same.
        pools: Dagster concurrency pools by node, such as ``{"answers": "llm"}``: where a pool has
            a limit, no more of its steps run at a time in the whole deployment. In ``single_step``
            the one step is in the one pool that is named.
        partitions: Of every asset. A path then has ``{partition}`` in it and is a file for each
            of them, a function takes the partition's key, an upstream asset has partitions.
        unpartitioned: Nodes that take all partitions at once, in their order. Nodes that take
            nothing but results of such nodes are unpartitioned as well; a partitioned node that
            takes one beside others is given the whole of it.
        allow_missing_partitions: Whether unpartitioned nodes do without the partitions that are
            not there; otherwise those are an error that names them.
        backfill_policy: By default a backfill is a run for each partition; with
            ``dg.BackfillPolicy.single_run()`` one run works on one after the other.
        automation: When an asset is materialized by itself, such as
            ``dg.AutomationCondition.eager()``; of all assets, or a dict by node name.
        freshness_policy: Of every asset.
        root: Folder of all results, if it is known before a run; the assets then show where theirs
            is. It has no other effect: results go where the resource says.
        max_error_rate: Which share of an operator's records may fail before its check
            ``failed_records`` does not pass: a number in [0, 1], an `ErrorRateCheck`, or either of
            them by node. By default any failed record is a warning. ``None``: no such check.
        stream_name: What the asset of a source that is a stream is called; by default as its
            function, its reader, or the first file it reads.

    Raises:
        PipelineDefinitionError: An option names no node, or several pools for one step.
        ConfigurationError: A share of failed records is not in [0, 1].
    """
    common = AssetOptions(
        partitions=partitions,
        unpartitioned=unpartitioned,
        allow_missing_partitions=allow_missing_partitions,
        backfill_policy=backfill_policy,
        automation=automation,
        freshness_policy=freshness_policy,
        root=root,
        max_error_rate=max_error_rate,
        stream_name=stream_name,
        retry_policy=retry_policy,
    )
    planned = plan_pipeline(ppl, source=source, dataops_translator=translator, options=common)
    options = StepOptions(retry_policy=retry_policy, backfill_policy=backfill_policy)
    return lay_out(ppl, planned, layout, pools or {}, options)


def lay_out(
    ppl: Pipeline,
    planned: PlannedPipeline,
    layout: Layout,
    pools: Mapping[str, str],
    options: StepOptions,
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of a planned pipeline; arguments and errors as `build_operator_assets`."""
    by_node = pools_by_node(ppl.graph, pools)
    if layout == "single_step":
        pool = common_pool(ppl.graph, by_node)
        assets = pipeline_steps(planned, _step_name(ppl), replace(options, pool=pool))
    else:
        assets = [
            operator_step(plan, replace(options, pool=by_node.get(plan.node.name)))
            for plan in planned.plans
        ]
    return [*_own_source(planned), *assets]


def _step_name(ppl: Pipeline) -> str:
    return ppl.graph.name or "dataops"


def _own_source(planned: PlannedPipeline) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    origin = planned.origin
    files = origin.files if isinstance(origin, StreamSource) else ()
    return [*([] if origin.definition is None else [origin.definition]), *files]
