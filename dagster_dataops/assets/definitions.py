"""build_definitions: everything Dagster needs to run a pipeline, in one call."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Unpack

import dagster as dg
from typing_extensions import Doc

from dagster_dataops.assets.asset_factory import LayoutOptions, lay_out
from dagster_dataops.assets.automation.jobs import (
    JobKind,
    JobOptions,
    JobSettings,
    job_kinds,
    pipeline_jobs,
    refresh_jobs,
    retry_jobs,
)
from dagster_dataops.assets.automation.schedules import (
    PipelineSchedule,
    check_run_config,
    pipeline_schedule,
)
from dagster_dataops.assets.automation.sensors import NewFiles, new_files_sensor
from dagster_dataops.assets.executors import Executor, executor_of
from dagster_dataops.assets.inputs.io_manager import DataOpsIOManager
from dagster_dataops.assets.planning.asset_options import DATAOPS, resource_key_of
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.runtime.llm_resource import with_clients
from dagster_dataops.assets.runtime.resource import DataOpsResource, io_manager_key
from dagster_dataops.assets.steps.check_steps import Checks, check_steps, hold_within_step
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline, planned_pipeline
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.concurrency.garbage import collected_rarely
from dagster_dataops.foundation.parts import has_model_operators, has_review_operators
from dagster_dataops.foundation.places.url_forms import is_url
from dagster_dataops.pipelines.graph.operator_node import SOURCE
from dagster_dataops.pipelines.pipeline import Pipeline


class PipelineOptions(LayoutOptions, JobOptions, total=False):
    """Options of `build_definitions` and of a defs.yaml; every one may be left out.

    Keywords, their descriptions and the fields of `OperatorPipelineComponent` are generated from
    this list.
    """

    schedule: Annotated[
        str | PipelineSchedule | None,
        Doc(
            "Cron line that materializes everything, such as `0 2 * * *`, or a "
            "`PipelineSchedule` that also has time zone, run config and tags. With time windows "
            "each run takes the last closed window, so the cron line must come once per window; "
            "`@window` is the moment the window closes. With static partitions each run takes "
            "all partitions."
        ),
    ]
    executor: Annotated[
        Executor,
        Doc(
            "Executor of the jobs of the pipeline. `in_process`, the default: the steps run one "
            "after the other in the process of the run; operators start their own worker processes "
            "and threads. `multiprocess`: steps run in parallel, each in a process forked from one "
            "that has imported Dagster. In Python, any `dg.ExecutorDefinition` is also accepted. "
            "Launches without a job, such as Materialize on an asset, have the executor of the "
            "code location."
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
            "`source` for the source. The checks of an asset run in a step after the asset's "
            "step. In `single_step`, blocking checks of inputs of other nodes run inside the step."
        ),
    ]
    report: Annotated[
        bool,
        Doc(
            "Adds the asset `report`, which depends on the last assets: an HTML file with the "
            "records in and out of each node, drops, changes and failed records."
        ),
    ]
    clients: Annotated[
        Mapping[str, dg.ConfigurableResource[Any]],
        Doc(
            "Clients of operators by name, such as `{'default': LLMResource(...)}`, which "
            "operators that ask a language model use."
        ),
    ]


@takes_options(PipelineOptions)
@collected_rarely()  # all that it makes stays
def build_definitions(
    ppl: Pipeline, *, source: Source, **options: Unpack[PipelineOptions]
) -> dg.Definitions:
    """Return definitions with one asset per node, jobs, checks and resources.

    The job ``<pipeline>_pipeline`` materializes everything. ``jobs`` names those to make:

    - ``pipeline`` makes that job.
    - ``refresh`` makes ``<pipeline>_refresh``, which materializes stale assets and everything
      downstream of them.
    - ``retry`` makes ``<pipeline>_retry_failed_records``, which retries only failed records.
    - ``preview`` makes ``<pipeline>_preview``, which previews the pipeline, or one partition of it.
    - ``estimate`` makes ``<pipeline>_estimate``, which estimates the cost, if operators ask
      language models.

    Each job costs time and memory in every process that loads the definitions. A launch of any
    assets with the tag ``dagster_dataops/refresh: true`` or
    ``dagster_dataops/retry_failed_records: true`` does what the jobs of these names do.

    Merge the definitions of several pipelines with
    ``dg.Definitions.merge``. They set no executor of the code location: only the jobs of the
    pipeline have one.

    Args:
        ppl: A complete pipeline.
        source: Origin of the records, one of the following. The path of a jsonl file, or the URL of
            one on an object store, which workers read by ranges. A function that yields dicts. An
            upstream asset, its spec or its key, stored by any IO manager as a list of dicts, a
            DataFrame or a `JsonlDataset`. A stream (`DataPipeline`), a function annotated to return
            one, an object with ``name`` and ``stream()``, another URL, or a compressed file: these
            become an asset that writes the items of the stream and resumes after a kill. Several
            assets and files that are combined, for example by ``combine.sample([...])``.
        **options: See `PipelineOptions`.

    Raises:
        PipelineDefinitionError: An option names an unknown node, one step has several pools, or
            a node is called ``report`` beside the report.
        ConfigurationError: ``max_error_rate`` is not in [0, 1], or ``new_files`` has no path or no
            dynamic partitions.
        MissingExtraError: The root or the source needs a package that is not installed.
    """
    dataops = options.get("resource") or DataOpsResource()
    dataops = with_clients(dataops, options.get("clients") or {})
    options["resource"] = dataops
    checks = options.get("checks") or {}
    planned = planned_pipeline(ppl, source, options)
    if options.get("layout") == "single_step":
        planned = hold_within_step(planned, checks)
    assets = lay_out(planned, options)
    if options.get("report"):
        from dagster_dataops.assets.steps.report_step import report_step

        assets = [*assets, report_step(planned)]
    declared = check_steps(planned, checks)
    first = declared[:1] if checks.get(SOURCE) else []
    source_checks = [key for definition in first for key in definition.check_keys]
    settings = JobSettings.of(executor_of(options.get("executor", "in_process")), options)
    kinds = job_kinds(options)
    description = f"Materializes the assets of pipeline {planned.title}."
    jobs = pipeline_jobs(
        f"{planned.title}_pipeline", assets, settings, source_checks, description=description
    )
    jobs_by_kind: dict[JobKind, Callable[[], Sequence[Any]]] = {
        "pipeline": lambda: jobs,
        "preview": lambda: _preview_jobs(planned, source, settings),
        "estimate": lambda: _estimate_jobs(planned, source, settings),
        "retry": lambda: retry_jobs(ppl.graph.name, planned.origin, assets, settings),
        "refresh": lambda: refresh_jobs(planned.title, assets, settings),
    }
    definitions = dg.Definitions(
        assets=assets,
        asset_checks=declared,
        jobs=[job for kind, make in jobs_by_kind.items() if kind in kinds for job in make()],
        schedules=_schedules(jobs[0], options),
        sensors=[*_sensors(source, jobs[0], assets, options), *_awaiting_sensors(planned)],
        resources=dataops_resources(dataops, planned.resource_key),
    )
    check_run_config(options.get("schedule"), jobs[0].name, settings.hooks or (), definitions)
    return definitions


# Few pipelines need the following, which import the engine or the models.


def _preview_jobs(planned: PlannedPipeline, source: Source, settings: JobSettings) -> Sequence[Any]:
    from dagster_dataops.assets.automation.preview_job import preview_job

    return [preview_job(planned, source, tags=settings.tags)]


def _estimate_jobs(
    planned: PlannedPipeline, source: Source, settings: JobSettings
) -> Sequence[Any]:
    if not has_model_operators():
        return []
    from dagster_dataops.assets.automation.estimate_job import estimate_jobs

    return estimate_jobs(planned, source, tags=settings.tags)


def _awaiting_sensors(planned: PlannedPipeline) -> list[Any]:
    sensors: list[Any] = []
    if has_model_operators():
        from dagster_dataops.assets.automation.batches_sensor import batches_sensors

        sensors += batches_sensors(planned)
    if has_review_operators():
        from dagster_dataops.assets.automation.reviews_sensor import reviews_sensors

        sensors += reviews_sensors(planned)
    return sensors


def _schedules(job: Any, options: PipelineOptions) -> list[Any]:
    cron = options.get("schedule")
    return [] if cron is None else [pipeline_schedule(job, cron, options.get("partitions_def"))]


def dataops_resources(
    resource: DataOpsResource | None = None, resource_key: str = DATAOPS
) -> Mapping[str, Any]:
    """Return the resources that assets of operators need: ``dataops`` and ``dataops_io``.

    Args:
        resource: Root folder and defaults.
        resource_key: Key of the resource, as given to the assets; the key of the IO manager is
            ``<resource_key>_io``.
    """
    key = resource_key_of({"resource_key": resource_key})
    return _resources(resource or DataOpsResource(), key)


def _sensors(
    source: Source,
    job: Any,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    options: PipelineOptions,
) -> list[dg.SensorDefinition]:
    """Return the sensor for new files of the source, if ``new_files`` is given."""
    new_files, partitions_def = options.get("new_files"), options.get("partitions_def")
    if new_files is None:
        return []
    files = next((asset for asset in assets if isinstance(asset, dg.AssetSpec)), None)
    is_path = isinstance(source, (str, os.PathLike)) and not is_url(source) and files is not None
    if not (isinstance(partitions_def, dg.DynamicPartitionsDefinition) and is_path and files):
        allowed = (
            "for a path of this machine as source and "
            "partitions_def=dg.DynamicPartitionsDefinition(name=...)"
        )
        raise ConfigurationError("new_files", new_files, allowed)
    keys = [
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
        keys=keys,
        options=new_files,
    )
    return [sensor]


@functools.cache  # merged definitions need the same objects
def _resources(dataops: DataOpsResource, key: str) -> Mapping[str, Any]:
    """Return both resources. A launch that changes the first changes both."""
    fields = {name: getattr(dataops, name) for name in type(dataops).model_fields}
    shared = type(dataops).configure_at_launch(**fields)
    return {key: shared, io_manager_key(key): DataOpsIOManager(dataops=shared)}
