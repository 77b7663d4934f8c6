"""pipeline_step: one step for several operators, which materializes each as it finishes."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from dagster_dataops.assets.inputs.io_manager import OPERATOR_INPUT
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.step_context import Work
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.assets.steps.step_body import Body, step_function


def pipeline_steps(
    planned: PlannedPipeline, name: str, options: StepOptions
) -> list[dg.AssetsDefinition]:
    """Return the assets of a pipeline in as few steps as possible.

    Operators with different partitions are in different steps, because a run has partitions of one
    kind. An operator with metadata on an input has its own step, because Dagster supports that
    metadata only for single assets.
    """
    alone = [plan for plan in planned.plans if any(wanted.metadata for wanted in plan.ins.values())]
    together = [
        [plan for plan in group if plan not in alone] for group in _by_partitions(planned.plans)
    ]
    steps = [
        pipeline_step(
            options.body,
            plans,
            f"{name}_{number}" if number else name,
            options,
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


def pipeline_step(
    body: Body,
    plans: Sequence[AssetPlan],
    name: str,
    options: StepOptions,
) -> dg.AssetsDefinition:
    """Return the assets of ``plans`` as one step with a body from the user.

    ``body`` is a function of ``context`` and resources, which calls `DataOpsResource.run`.
    ``name`` is that of the op, which is its key in the launch config.
    """

    def work(config: Mapping[str, Any], loaded: Mapping[str, Any]) -> Work:
        from dagster_dataops.assets.steps.step_work import StepWork  # the engine; loaded by use

        return StepWork(plans, config, loaded)

    specs = [spec for plan in plans for spec in plan.stored_specs]
    keys = {spec.key for spec in specs}
    ins = {
        argument: dg.AssetIn(wanted.key)  # the deps of the specs hold its partition mapping
        for plan in plans
        for argument, wanted in plan.ins.items()
        if wanted.key not in keys
    }
    return dg.multi_asset(
        name=name,
        specs=specs,
        ins=ins,
        config_schema={plan.node.name: plan.config_field for plan in plans},
        check_specs=[check for plan in plans for check in plan.check_specs],
        can_subset=True,
        retry_policy=options.retry_policy,
        pool=options.pool,
        op_tags=options.op_tags,
        backfill_policy=options.backfills(specs[0]),
    )(step_function(body, work, tuple(ins), OPERATOR_INPUT))
