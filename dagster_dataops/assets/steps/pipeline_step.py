"""One step for a whole pipeline, each operator materialized as it finishes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.launchpad.config_schema import pipeline_schema
from dagster_dataops.assets.metadata.materialization import written_once
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import assign
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.assets.steps.step_work import StepWork

Body: TypeAlias = Callable[..., Any]


def pipeline_steps(
    planned: PlannedPipeline, name: str, options: StepOptions
) -> list[dg.AssetsDefinition]:
    """Return the assets of a pipeline, made by one step.

    Operators with other partitions than the rest have a step of their own: no run is about both.
    So has one that tells its IO manager how to load, which Dagster only lets an operator's own
    step say.
    """
    alone = [plan for plan in planned.plans if any(given.metadata for given in plan.ins.values())]
    together = [
        [plan for plan in group if plan not in alone] for group in _by_partitions(planned.plans)
    ]
    steps = [
        pipeline_step(_run_all, plans, f"{name}_{number}" if number else name, options)
        for number, plans in enumerate(filter(None, together))
    ]
    return [*steps, *(operator_step(plan, options) for plan in alone)]


def _by_partitions(plans: Sequence[AssetPlan]) -> list[list[AssetPlan]]:
    """Return the plans in groups of equal partitions, none of which needs a later one.

    What comes after operators with other partitions is in another group than what comes before
    them: Dagster loads what a step takes even if it was launched for other operators of it.
    """
    levels: dict[dg.AssetKey, tuple[int, object]] = {}
    groups: list[tuple[int, object, list[AssetPlan]]] = []
    for plan in plans:
        partitions = plan.spec.partitions_def
        before = [levels[key] for key, _ in plan.inputs if key in levels]
        level = max((number + (known != partitions) for number, known in before), default=0)
        levels[plan.spec.key] = (level, partitions)
        for number, known, group in groups:
            if (number, known) == (level, partitions):
                group.append(plan)
                break
        else:
            groups.append((level, partitions, [plan]))
    return [group for _, _, group in groups]


def _run_all(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
    yield from dataops.run(context)


def pipeline_step(
    body: Body, plans: Sequence[AssetPlan], name: str, options: StepOptions
) -> dg.AssetsDefinition:
    """Return the assets of ``plans`` as one step whose body is the user's.

    Args:
        body: Takes ``context`` and resources; `DataOpsResource.run` knows what to run by the
            context.
        plans: Each after those it depends on.
        name: Of the op, under which a launch configures it.
        options: What of the step is Dagster's business alone.
    """
    specs = [plan.spec for plan in plans]
    own = {spec.key for spec in specs}
    ins = {
        argument: dg.AssetIn(given.key)  # all else that is said of it stands in the specs' deps
        for plan in plans
        for argument, given in plan.ins.items()
        if given.key not in own
    }
    return dg.multi_asset(
        name=name,
        specs=specs,
        ins=ins,
        config_schema=dict(pipeline_schema([(plan.node, plan.config_schema) for plan in plans])),
        check_specs=[check for plan in plans for check in plan.check_specs],
        can_subset=True,
        retry_policy=options.retry_policy,
        pool=options.pool,
        op_tags=options.op_tags,
        backfill_policy=options.backfills(specs[0]),
    )(_with_work(body, plans, tuple(ins)))


def _with_work(body: Body, plans: Sequence[AssetPlan], arguments: Sequence[str]) -> Body:
    """Return ``body`` with what the step is to run assigned to its context.

    Dagster sees the signature of ``body`` with the inputs that IO managers load added to it.
    """

    @wraps(body)
    def step(context: dg.AssetExecutionContext, **given: Any) -> Iterator[Any]:
        loaded = {name: given.pop(name) for name in arguments if name in given}
        config: Mapping[str, Any] = context.op_execution_context.op_config
        assign(context, StepWork(plans, config, loaded))
        events = body(context, **given)
        if events is not None:
            told = events if isinstance(events, Iterator) else [events]
            yield from written_once(context, told)

    ours = signature(body)
    context, *resources = ours.parameters.values()
    kind = Parameter.POSITIONAL_OR_KEYWORD
    inputs = [Parameter(name, kind, annotation=Any) for name in arguments]
    signed = ours.replace(parameters=[context, *inputs, *resources])
    step.__signature__ = signed  # type: ignore[attr-defined]
    return step
