"""pipeline_step: one step for several operators, which materializes each as it finishes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.inputs.io_manager import OPERATOR_INPUT
from dagster_dataops.assets.metadata.materialization import written_once
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import resource_of
from dagster_dataops.assets.runtime.step_context import assign
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.assets.steps.step_work import StepWork

Body: TypeAlias = Callable[..., Any]


def pipeline_steps(
    planned: PlannedPipeline, name: str, options: StepOptions
) -> list[dg.AssetsDefinition]:
    """Return the assets of a pipeline in as few steps as possible.

    Operators with different partitions are in different steps, because a run has partitions of one
    kind. An operator with metadata on an input has its own step, because Dagster supports that
    metadata only for single assets.
    """
    alone = [plan for plan in planned.plans if any(given.metadata for given in plan.ins.values())]
    together = [
        [plan for plan in group if plan not in alone] for group in _by_partitions(planned.plans)
    ]
    steps = [
        pipeline_step(
            _run_all(options.resource_key),
            plans,
            f"{name}_{number}" if number else name,
            options,
            {options.resource_key},
        )
        for number, plans in enumerate(filter(None, together))
    ]
    return [*steps, *(operator_step(plan, options) for plan in alone)]


def _by_partitions(plans: Sequence[AssetPlan]) -> list[list[AssetPlan]]:
    """Group the plans by partitions; no group depends on a later one.

    Operators before and after an operator with other partitions are in different groups, because
    Dagster loads all inputs of a step, even if the run selected other operators of the step.
    """
    levels: dict[dg.AssetKey, tuple[int, object]] = {}
    groups: list[tuple[int, object, list[AssetPlan]]] = []
    for plan in plans:
        partitions = plan.spec.partitions_def
        upstream = [key for key, _ in plan.inputs]
        upstream += [spec.key for spec in plan.artefacts.values()]
        before = [levels[key] for key in upstream if key in levels]
        level = max((number + (known != partitions) for number, known in before), default=0)
        levels |= dict.fromkeys(plan.arguments, (level, partitions))
        for number, known, group in groups:
            if (number, known) == (level, partitions):
                group.append(plan)
                break
        else:
            groups.append((level, partitions, [plan]))
    return [group for _, _, group in groups]


def _run_all(resource_key: str) -> Body:
    def run_all(context: dg.AssetExecutionContext) -> Iterator[Any]:
        dataops = resource_of(context, resource_key)
        yield from dataops.run(context)

    return run_all


def pipeline_step(
    body: Body,
    plans: Sequence[AssetPlan],
    name: str,
    options: StepOptions,
    resource_keys: AbstractSet[str] = frozenset(),
) -> dg.AssetsDefinition:
    """Return the assets of ``plans`` as one step with a body from the user.

    Args:
        body: A function of ``context`` and resources, which calls `DataOpsResource.run`.
        plans: The plans in order of their dependencies.
        name: The name of the op, which is its key in the launch config.
        options: Dagster's options of the step.
        resource_keys: Keys of the resources that ``body`` takes from ``context``.
    """
    specs = [spec for plan in plans for spec in plan.specs]
    own = {spec.key for spec in specs}
    ins = {
        argument: dg.AssetIn(given.key)  # the deps of the specs hold its partition mapping
        for plan in plans
        for argument, given in plan.ins.items()
        if given.key not in own
    }
    return dg.multi_asset(
        name=name,
        specs=specs,
        ins=ins,
        config_schema={plan.node.name: _config_field(plan) for plan in plans},
        check_specs=[check for plan in plans for check in plan.check_specs],
        can_subset=True,
        retry_policy=options.retry_policy,
        pool=options.pool,
        op_tags=options.op_tags,
        required_resource_keys=resource_keys or None,
        backfill_policy=options.backfills(specs[0]),
    )(_with_work(body, plans, tuple(ins)))


def _config_field(plan: AssetPlan) -> dg.Field:
    text = f"{plan.node.operator.__dataops__.spec.reference}, and how it is run."
    return dg.Field(plan.config_schema, description=text)


def _with_work(body: Body, plans: Sequence[AssetPlan], arguments: Sequence[str]) -> Body:
    """Return ``body`` wrapped to assign the step's work to its context.

    The signature for Dagster is that of ``body`` plus the inputs that IO managers load.
    """

    @wraps(body)
    def step(context: dg.AssetExecutionContext, **given: Any) -> Iterator[Any]:
        loaded = {name: given.pop(name) for name in arguments if name in given}
        config: Mapping[str, Any] = context.op_execution_context.op_config
        assign(context, StepWork(plans, config, loaded))
        events = body(context, **given)
        if events is not None:
            yield from written_once(context, events if isinstance(events, Iterator) else [events])

    ours = signature(body)
    context, *resources = ours.parameters.values()
    kind = Parameter.POSITIONAL_OR_KEYWORD
    inputs = [Parameter(name, kind, annotation=OPERATOR_INPUT) for name in arguments]
    signed = ours.replace(parameters=[context, *inputs, *resources])
    step.__signature__ = signed  # type: ignore[attr-defined]
    return step
