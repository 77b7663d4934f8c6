"""build_definitions: everything Dagster needs to run a pipeline, in one call."""

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import dagster as dg

from dagster_dataops.assets.asset_factory import Layout, lay_out
from dagster_dataops.assets.automation.jobs import pipeline_jobs
from dagster_dataops.assets.automation.preview_job import preview_job
from dagster_dataops.assets.automation.refresh_job import refresh_jobs
from dagster_dataops.assets.automation.retry_job import retry_jobs
from dagster_dataops.assets.automation.schedules import pipeline_schedule
from dagster_dataops.assets.automation.sensors import NewFiles, new_files_sensor
from dagster_dataops.assets.checks.error_rate import ErrorRateCheck, ErrorRates
from dagster_dataops.assets.executors import Executor, executor_of
from dagster_dataops.assets.inputs.io_manager import DataOpsIOManager
from dagster_dataops.assets.planning.asset_options import AssetOptions, Automation
from dagster_dataops.assets.planning.source_assets import IO_MANAGER, Source
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.check_steps import Checks, check_steps, hold_within_step
from dagster_dataops.assets.steps.planned_pipeline import plan_pipeline
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.graph.graph import SOURCE
from dagster_dataops.pipelines.pipeline import Pipeline


def build_definitions(  # noqa: PLR0913 - all there is to say, by name
    ppl: Pipeline,
    *,
    source: Source,
    resource: DataOpsResource | None = None,
    schedule: str | None = None,
    dagster_dataops_translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    layout: Layout = "steps",
    pools: Mapping[str, str] | None = None,
    executor: Executor = "in_process",
    partitions_def: dg.PartitionsDefinition | None = None,
    unpartitioned: Collection[str] = (),
    allow_missing_partitions: bool = False,
    backfill_policy: dg.BackfillPolicy | None = None,
    automation_condition: Automation | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    new_files: NewFiles | None = None,
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
    checks: Checks | None = None,
    stream_name: str = "",
) -> dg.Definitions:
    """Return definitions with an asset a node, jobs, resources and executor.

    One job materializes everything, ``<pipeline>_pipeline``; another retries failed records
    alone, ``retry_failed_records_<pipeline>``; a third makes what is stale and all that is
    downstream of it, ``<pipeline>_refresh``; a fourth previews everything, ``<pipeline>_preview``,
    of one partition where there are any.

    Args:
        ppl: A complete pipeline.
        source: Where its records come from: the path of a jsonl file, a function that yields
            dicts, or an upstream asset, whatever IO manager stores it: a list of dicts or a
            DataFrame serves as well as a handle of ours. Or a stream (`DataPipeline`), a function
            annotated to return one, or what has a ``name`` and a method ``stream``: an asset
            that writes its items, and goes on within them after a kill. A URL and a compressed
            file are read so as well. Or several of these assets and files, as by
            ``combine.sample([...])``.
        resource: Root folder and defaults.
        schedule: A cron line, such as ``0 2 * * *``, to materialize everything by. With time
            windows it materializes the window that has closed last, and must come once a window;
            ``@window`` is the moment it closes. With static partitions it materializes them all.
        dagster_dataops_translator: Keys, groups and descriptions.
        retry_policy: Of every step; a retry goes on where the attempt stopped.
        layout: ``steps`` gives every operator a step of its own, which an executor may run beside
            others or elsewhere. ``single_step`` runs the selected operators one after the other
            in one step, each materialized as it finishes: it saves the start of a process a step
            where the executor starts any. Keys, specs, bytes and metadata are the same.
        pools: Dagster concurrency pools by node, such as ``{"answers": "llm"}``: where a pool has
            a limit, no more of its steps run at a time in the whole deployment. In ``single_step``
            the one step is in the one pool that is named.
        executor: ``in_process`` runs the steps in the run's own process, one after the other:
            operators bring their own worker processes and threads, and no step costs a process.
            ``multiprocess`` runs steps beside one another, each in a process of its own that is
            forked from one in which Dagster is imported already. Any other
            ``dg.ExecutorDefinition`` is taken as it is.
        partitions_def: Of every asset. A path then has ``{partition}`` in it and is a file for each
            of them, a function takes the partition's key, an upstream asset has partitions.
        unpartitioned: Nodes that take all partitions at once, in their order. Nodes that take
            nothing but results of such nodes are unpartitioned as well, and all of them have a
            job of their own, ``..._unpartitioned``; a partitioned node that takes one beside
            others is given the whole of it.
        allow_missing_partitions: Whether unpartitioned nodes do without the partitions that are
            not there; otherwise those are an error that names them.
        backfill_policy: By default a backfill is a run for each partition; with
            ``dg.BackfillPolicy.single_run()`` one run works on one after the other.
        automation_condition: When an asset is materialized by itself, such as
            ``dg.AutomationCondition.eager()``; of all assets, or a dict by node name.
        freshness_policy: Of every asset.
        new_files: Adds a sensor that makes a dynamic partition of each new file of the source.
        max_error_rate: Which share of an operator's records may fail before its check
            ``failed_records`` does not pass: a number in [0, 1], an `ErrorRateCheck`, or either of
            them by node. By default any failed record is a warning. If more than half of the
            records failed, it is an error that holds up what is downstream, unless an
            `ErrorRateCheck` says how severe it is. ``None``: no such check.
        checks: Of results, by node, such as ``{"upper": [checks.no_nulls("text")]}``; by ``source``
            for the source. They have a step for each asset, after its own; in ``single_step``
            those that block are made within the one step, as soon as their asset is there.
        stream_name: What the asset of a source that is a stream is called; by default as its
            function, its reader, or the first file it reads.

    Merge with other definitions by ``dg.Definitions.merge``; several pipelines
    need equal resources for that, since they share one.

    Raises:
        PipelineDefinitionError: An option names no node, or several pools for one step.
        ConfigurationError: A share of failed records is not in [0, 1].
    """
    dataops = resource or DataOpsResource()
    options = AssetOptions(
        partitions_def=partitions_def,
        unpartitioned=unpartitioned,
        allow_missing_partitions=allow_missing_partitions,
        backfill_policy=backfill_policy,
        automation_condition=automation_condition,
        freshness_policy=freshness_policy,
        root=dataops.defined_root,
        max_error_rate=max_error_rate,
        stream_name=stream_name,
        retry_policy=retry_policy,
    )
    planned = plan_pipeline(
        ppl, source=source, dagster_dataops_translator=dagster_dataops_translator, options=options
    )
    if layout == "single_step":
        planned = hold_within_step(planned, checks or {})
    assets = lay_out(planned, layout, pools or {})
    declared = check_steps(planned, checks or {})
    first = declared[:1] if checks and checks.get(SOURCE) else []  # those of the source
    source_checks = [key for definition in first for key in definition.check_keys]
    jobs = pipeline_jobs(f"{planned.title}_pipeline", assets, source_checks)
    schedules = [] if schedule is None else [pipeline_schedule(jobs[0], schedule, partitions_def)]
    sensors = []
    if new_files is not None:
        sensors.append(_files_sensor(source, partitions_def, jobs[0], assets, new_files))
    jobs.append(preview_job(planned, source))
    return dg.Definitions(
        assets=assets,
        asset_checks=declared,
        jobs=[
            *jobs,
            *retry_jobs(ppl.graph.name, source, assets),
            *refresh_jobs(planned.title, assets),
        ],
        schedules=schedules,
        sensors=sensors,
        resources=dataops_resources(dataops),
        executor=executor_of(executor),
    )


def dataops_resources(resource: DataOpsResource | None = None) -> Mapping[str, Any]:
    """Return the resources that assets of operators need: ``dataops`` and ``dataops_io``.

    Args:
        resource: Root folder and defaults.
    """
    return _resources(resource or DataOpsResource())


def _files_sensor(
    source: Source,
    partitions_def: dg.PartitionsDefinition | None,
    job: Any,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    options: NewFiles,
) -> dg.SensorDefinition:
    """Return the sensor of the source's files.

    Raises:
        ConfigurationError: There are no dynamic partitions, or the source is no path.
    """
    files = next((asset for asset in assets if isinstance(asset, dg.AssetSpec)), None)
    is_path = isinstance(source, (str, os.PathLike))
    if (
        not isinstance(partitions_def, dg.DynamicPartitionsDefinition)
        or files is None
        or not is_path
    ):
        allowed = "for a path as source and partitions_def=dg.DynamicPartitionsDefinition(name=...)"
        raise ConfigurationError("new_files", options, allowed)
    made = [
        key
        for asset in assets
        if isinstance(asset, dg.AssetsDefinition)
        for key in asset.keys
        if asset.specs_by_key[key].partitions_def is not None
    ]
    return new_files_sensor(
        str(source),
        partitions_def=partitions_def,
        job=job,
        source=files.key,
        made=made,
        options=options,
    )


@functools.cache  # merging definitions needs the very same objects
def _resources(dataops: DataOpsResource) -> Mapping[str, Any]:
    """Return the resources; what a launch changes of ``dataops`` counts for both of them."""
    given = {name: getattr(dataops, name) for name in type(dataops).model_fields}
    shared = type(dataops).configure_at_launch(**given)
    return {"dataops": shared, IO_MANAGER: DataOpsIOManager(dataops=shared)}
