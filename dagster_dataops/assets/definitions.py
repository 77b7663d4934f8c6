"""build_definitions: everything Dagster needs to run a pipeline, in one call."""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Unpack

import dagster as dg
from typing_extensions import Doc

from dagster_dataops.assets.asset_factory import LayoutOptions, lay_out
from dagster_dataops.assets.automation.jobs import pipeline_jobs
from dagster_dataops.assets.automation.preview_job import preview_job
from dagster_dataops.assets.automation.refresh_job import refresh_jobs
from dagster_dataops.assets.automation.retry_job import retry_jobs
from dagster_dataops.assets.automation.schedules import pipeline_schedule
from dagster_dataops.assets.automation.sensors import NewFiles, new_files_sensor
from dagster_dataops.assets.executors import Executor, executor_of
from dagster_dataops.assets.inputs.io_manager import DataOpsIOManager
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.planning.source_assets import IO_MANAGER, Source
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.check_steps import Checks, check_steps, hold_within_step
from dagster_dataops.assets.steps.planned_pipeline import planned_pipeline
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.graph.graph import SOURCE
from dagster_dataops.pipelines.pipeline import Pipeline


class PipelineOptions(LayoutOptions, total=False):
    """Options of `build_definitions` and of a defs.yaml; every one may be left out.

    The one list of them: keywords, their descriptions and the fields of `OperatorPipelineComponent`
    are made of it.
    """

    schedule: Annotated[
        str | None,
        Doc(
            "Cron line that materializes everything, such as `0 2 * * *`. With time windows each "
            "run takes the last closed window, so the cron line must come once per window; "
            "`@window` is the moment the window closes. With static partitions each run takes "
            "all partitions."
        ),
    ]
    executor: Annotated[
        Executor,
        Doc(
            "`in_process`, the default: the steps run one after the other in the process of the "
            "run; operators bring their own worker processes and threads. `multiprocess`: steps "
            "run in parallel, each in a process forked from one that has Dagster imported. In "
            "Python also any `dg.ExecutorDefinition`."
        ),
    ]
    new_files: Annotated[
        NewFiles | None,
        Doc("Adds a sensor that makes a dynamic partition of each new file of the source."),
    ]
    checks: Annotated[
        Checks | None,
        Doc(
            "Checks of results by node, such as `{'upper': [checks.no_nulls('text')]}`; by "
            "`source` for the source. Each asset with checks gets a step for them after its own. "
            "In `single_step` the blocking checks of inputs of other nodes run in the one step."
        ),
    ]


@takes_options(PipelineOptions)
def build_definitions(
    ppl: Pipeline, *, source: Source, **options: Unpack[PipelineOptions]
) -> dg.Definitions:
    """Return definitions with an asset per node, jobs, checks, resources and executor.

    There are four jobs: ``<pipeline>_pipeline`` materializes everything,
    ``retry_failed_records_<pipeline>`` retries failed records alone, ``<pipeline>_refresh``
    materializes stale assets and everything downstream of them, and ``<pipeline>_preview``
    previews the pipeline, with partitions one of them.

    Merge the definitions of several pipelines by ``dg.Definitions.merge``.

    Args:
        ppl: A complete pipeline.
        source: Origin of the records: the path of a jsonl file; a function that yields dicts; or
            an upstream asset, its spec or its key, stored by any IO manager as a list of dicts, a
            DataFrame or a `JsonlDataset`. A stream (`DataPipeline`), a function annotated to
            return one, an object with ``name`` and ``stream()``, a URL and a compressed file
            become an asset that writes its items and resumes within them after a kill. Several
            assets and files are combined, such as by ``combine.sample([...])``.
        **options: See `PipelineOptions`.

    Raises:
        PipelineDefinitionError: An option names an unknown node, or one step has several pools.
        ConfigurationError: ``max_error_rate`` is not in [0, 1], or ``new_files`` has no path or
            no dynamic partitions.
    """
    dataops = options.get("resource") or DataOpsResource()
    options["resource"] = dataops
    checks = options.get("checks") or {}
    planned = planned_pipeline(ppl, source, options)
    if options.get("layout") == "single_step":
        planned = hold_within_step(planned, checks)
    assets = lay_out(planned, options)
    declared = check_steps(planned, checks)
    first = declared[:1] if checks.get(SOURCE) else []
    source_checks = [key for definition in first for key in definition.check_keys]
    description = f"Materializes the assets of pipeline {planned.title}."
    jobs = pipeline_jobs(
        f"{planned.title}_pipeline", assets, source_checks, description=description
    )
    return dg.Definitions(
        assets=assets,
        asset_checks=declared,
        jobs=[
            *jobs,
            preview_job(planned, source),
            *retry_jobs(ppl.graph.name, source, assets),
            *refresh_jobs(planned.title, assets),
        ],
        schedules=_schedules(jobs[0], options),
        sensors=_sensors(source, jobs[0], assets, options),
        resources=dataops_resources(dataops),
        executor=executor_of(options.get("executor", "in_process")),
    )


def _schedules(job: Any, options: PipelineOptions) -> list[Any]:
    cron = options.get("schedule")
    return [] if cron is None else [pipeline_schedule(job, cron, options.get("partitions_def"))]


def dataops_resources(resource: DataOpsResource | None = None) -> Mapping[str, Any]:
    """Return the resources that assets of operators need: ``dataops`` and ``dataops_io``.

    Args:
        resource: Root folder and defaults.
    """
    return _resources(resource or DataOpsResource())


def _sensors(
    source: Source,
    job: Any,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    options: PipelineOptions,
) -> list[dg.SensorDefinition]:
    """Return the sensor of the source's files, if it was asked for.

    Raises:
        ConfigurationError: There are no dynamic partitions, or the source is no path.
    """
    new_files, partitions_def = options.get("new_files"), options.get("partitions_def")
    if new_files is None:
        return []
    files = next((asset for asset in assets if isinstance(asset, dg.AssetSpec)), None)
    is_path = isinstance(source, (str, os.PathLike)) and files is not None
    if not (isinstance(partitions_def, dg.DynamicPartitionsDefinition) and is_path and files):
        allowed = "for a path as source and partitions_def=dg.DynamicPartitionsDefinition(name=...)"
        raise ConfigurationError("new_files", new_files, allowed)
    made = [
        key
        for asset in assets
        if isinstance(asset, dg.AssetsDefinition)
        for key in asset.keys
        if asset.specs_by_key[key].partitions_def is not None
    ]
    sensor = new_files_sensor(
        str(source),
        partitions_def=partitions_def,
        job=job,
        source=files.key,
        made=made,
        options=new_files,
    )
    return [sensor]


@functools.cache  # merged definitions need the same objects
def _resources(dataops: DataOpsResource) -> Mapping[str, Any]:
    """Return both resources; a launch that changes ``dataops`` changes both."""
    given = {name: getattr(dataops, name) for name in type(dataops).model_fields}
    shared = type(dataops).configure_at_launch(**given)
    return {"dataops": shared, IO_MANAGER: DataOpsIOManager(dataops=shared)}
