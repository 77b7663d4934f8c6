"""build_definitions: everything Dagster needs to run a pipeline, in one call."""

import functools
from collections.abc import Mapping
from typing import Any

import dagster as dg

from dagster_dataops.assets.check_steps import Checks, build_operator_checks, refuse_within_one_step
from dagster_dataops.assets.error_rate import ErrorRateCheck, ErrorRates
from dagster_dataops.assets.executors import Executor, executor_of
from dagster_dataops.assets.factory import Layout, build_operator_assets
from dagster_dataops.assets.io_manager import DataOpsIOManager
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.retry_job import retry_job
from dagster_dataops.assets.sources import IO_MANAGER, Source
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.services.pipeline import Pipeline


def build_definitions(  # noqa: PLR0913 - all there is to say, by name
    ppl: Pipeline,
    *,
    source: Source,
    resource: DataOpsResource | None = None,
    schedule: str | None = None,
    translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    layout: Layout = "steps",
    pools: Mapping[str, str] | None = None,
    executor: Executor = "in_process",
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
    checks: Checks | None = None,
) -> dg.Definitions:
    """Return definitions with an asset a node, jobs, resources and executor.

    One job materializes everything, ``<pipeline>_pipeline``; the other retries failed records
    alone, ``retry_failed_records_<pipeline>``.

    Args:
        ppl: A complete pipeline.
        source: Where its records come from: the path of a jsonl file, a function that yields
            dicts, or an upstream asset.
        resource: Root folder and defaults.
        schedule: A cron line, such as ``0 2 * * *``, to materialize everything by.
        translator: Keys, groups and descriptions.
        retry_policy: Of every operator's step.
        layout: ``steps``, one an operator, or ``single_step`` for all of them, as
            `build_operator_assets` has it.
        pools: Dagster concurrency pools by node.
        executor: ``in_process`` runs the steps in the run's own process, one after the other:
            operators bring their own worker processes and threads, and no step costs a process.
            ``multiprocess`` runs steps beside one another, each in a process of its own that is
            forked from one in which Dagster is imported already. Any other
            ``dg.ExecutorDefinition`` is taken as it is.
        max_error_rate: As in `build_operator_assets`.
        checks: Of results, by node, such as ``{"upper": [checks.no_nulls("text")]}``; by ``source``
            for the source. They have a step for each asset, after its own.

    Merge with other definitions by ``dg.Definitions.merge``; several pipelines
    need equal resources for that, since they share one.
    """
    assets = build_operator_assets(
        ppl,
        source=source,
        translator=translator,
        retry_policy=retry_policy,
        layout=layout,
        pools=pools,
        max_error_rate=max_error_rate,
    )
    if layout == "single_step":
        refuse_within_one_step(ppl, checks or {})
    declared = build_operator_checks(ppl, source=source, checks=checks or {}, translator=translator)
    name = f"{ppl.graph.name or 'dataops'}_pipeline"
    keys = [key for asset in assets for key in _materializable(asset)]
    job = dg.define_asset_job(name, selection=dg.AssetSelection.assets(*keys))
    operators = keys[-len(ppl.graph.nodes) :]  # the source's comes first, if it is among them
    schedules = []
    if schedule is not None:
        schedules.append(
            dg.ScheduleDefinition(name=f"{name}_schedule", job=job, cron_schedule=schedule)
        )
    return dg.Definitions(
        assets=assets,
        asset_checks=declared,
        jobs=[job, retry_job(ppl.graph.name, operators)],
        schedules=schedules,
        resources=dataops_resources(resource),
        executor=executor_of(executor),
    )


def dataops_resources(resource: DataOpsResource | None = None) -> Mapping[str, Any]:
    """Return the resources that assets of operators need: ``dataops`` and ``dataops_io``.

    Args:
        resource: Root folder and defaults.
    """
    return _resources(resource or DataOpsResource())


@functools.cache  # merging definitions needs the very same objects
def _resources(dataops: DataOpsResource) -> Mapping[str, Any]:
    """Return the resources; what a launch changes of ``dataops`` counts for both of them."""
    given = {name: getattr(dataops, name) for name in type(dataops).model_fields}
    shared = type(dataops).configure_at_launch(**given)
    return {"dataops": shared, IO_MANAGER: DataOpsIOManager(dataops=shared)}


def _materializable(asset: dg.AssetsDefinition | dg.AssetSpec) -> list[dg.AssetKey]:
    return list(asset.keys) if isinstance(asset, dg.AssetsDefinition) else []
