"""build_operator_checks: the declared checks of a pipeline, one step per checked asset."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, Unpack

import dagster as dg

from dagster_dataops.assets.checks.check_partitions import partitions_of_checks, with_partitions
from dagster_dataops.assets.checks.check_results import CheckedAsset, declared_results
from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import FAILED_RECORDS, check_nodes
from dagster_dataops.assets.checks.missing_columns import MISSING_COLUMNS
from dagster_dataops.assets.planning.asset_options import AssetOptions, resource_key_of
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.planning.check_translation import CheckTranslation
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline, planned_pipeline
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.assets.steps.step_body import with_resource
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.operators.options.type_checks import matches_type
from dagster_dataops.pipelines.graph.operator_node import SOURCE
from dagster_dataops.pipelines.pipeline import Pipeline

Checks: TypeAlias = Mapping[str, Sequence[DeclaredCheck]]


@takes_options(AssetOptions)
def build_operator_checks(
    ppl: Pipeline, *, source: Source, checks: Checks, **options: Unpack[AssetOptions]
) -> list[dg.AssetChecksDefinition]:
    """Return the declared checks as Dagster's checks; `build_definitions` adds them itself.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        checks: Checks by node, or by result such as ``split.train``; by ``source`` for the source,
            if it is a file or a function. The checks of a node with several results apply to each.
        **options: See `AssetOptions`; give the same options as for the assets.

    Raises:
        PipelineDefinitionError: A node is unknown, or two of its checks have the same name.
    """
    if not checks:
        return []
    return check_steps(planned_pipeline(ppl, source, options), checks)


def check_steps(planned: PlannedPipeline, checks: Checks) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a planned pipeline, except those that run inside the operators' steps.

    Arguments and errors as for `build_operator_checks`.
    """
    _check_declared(planned, checks)
    assets = [
        _checked_result(plan, result, checks) for plan in planned.plans for result in plan.results
    ]
    if SOURCE in checks:
        assets.insert(0, _checked_source(planned, checks[SOURCE]))
    return [_check_step(asset, planned.options) for asset in assets if asset.checks]


def _checked_result(plan: AssetPlan, result: str, checks: Checks) -> CheckedAsset:
    """Return a result with its declared checks that do not run inside the operator's step."""
    spec = plan.results[result]
    held = plan.checks.get(result, ())
    others = [check for check in _checks_of(plan, result, checks) if check not in held]
    if others:
        specs = [*plan.check_specs, *(check.spec(spec.key) for check in others)]
        plan.check_translation.check_names(specs)
    return CheckedAsset(spec.key, others, spec.partitions_def)


def hold_within_step(planned: PlannedPipeline, checks: Checks) -> PlannedPipeline:
    """Return a pipeline for a single step. Blocking checks between operators run inside the step.

    Arguments and errors as for `check_steps`.
    """
    _check_declared(planned, checks)
    nodes = planned.graph.nodes.values()
    upstream = {name for node in nodes for name in (*node.inputs, *node.artefacts)}
    plans = [
        replace(
            plan,
            checks={
                result: [
                    each
                    for each in _checks_of(plan, result, checks)
                    if each.blocking and result in upstream
                ]
                for result in plan.results
            },
        )
        for plan in planned.plans
    ]
    return replace(planned, plans=plans)


def _checks_of(plan: AssetPlan, result: str, checks: Checks) -> list[DeclaredCheck]:
    """Return the checks of a result: those of its node, and its own."""
    spec = plan.results[result]
    output = next(
        (name for name, result_spec in plan.outputs.items() if result_spec.key == spec.key), ""
    )
    return [
        plan.check_translation.declared(
            check, spec.key, plan.node, output=output, partitions_def=plan.check_partitions
        )
        for check in _declared_for(plan.node.name, result, checks)
    ]


def _declared_for(node: str, result: str, checks: Checks) -> list[DeclaredCheck]:
    of_result = checks.get(result, ()) if result != node else ()
    return [*checks.get(node, ()), *of_result]


def _check_declared(planned: PlannedPipeline, checks: Checks) -> None:
    check_nodes(planned.graph, checks, "checks", SOURCE, *planned.graph.results)
    for name, declared in checks.items():
        if isinstance(declared, DeclaredCheck):
            reason = f"the checks of {name!r} must be a list; found one check, {declared.name}"
            raise PipelineDefinitionError(planned.graph.name, reason)
        if not matches_type(declared, Sequence[DeclaredCheck]):
            allowed = "a list of checks, such as [checks.no_nulls('text')]"
            raise ConfigurationError(f"checks.{name}", declared, allowed)
        node = planned.graph.results.get(name, name)
        asked = declared if name == SOURCE else _declared_for(node, name, checks)
        _check_names(planned.graph.name, name, [check.name for check in asked])


def _check_names(pipeline: str, node: str, names: Sequence[str]) -> None:
    for name in names:
        if name in {FAILED_RECORDS, MISSING_COLUMNS} or names.count(name) > 1:
            reason = f"node {node!r} has two checks {name!r}; give one of them another name="
            raise PipelineDefinitionError(pipeline, reason)


def _checked_source(planned: PlannedPipeline, checks: Sequence[DeclaredCheck]) -> CheckedAsset:
    origin = planned.origin
    if origin.path is None and not isinstance(origin.definition, dg.AssetsDefinition):
        reason = "the source is an asset that is defined elsewhere; declare its checks there"
        raise PipelineDefinitionError(planned.graph.name, reason)
    partitions_def = planned.options.get("partitions_def")
    translator = planned.options.get("dagster_dataops_translator")
    translation = CheckTranslation.of(planned.graph.name, translator)
    source_checks = [
        translation.declared(
            check, origin.key, None, partitions_def=None if origin.path else partitions_def
        )
        for check in checks
    ]
    translation.check_names([check.spec(origin.key) for check in source_checks])
    return CheckedAsset(origin.key, source_checks, partitions_def, origin.path)


def _check_step(asset: CheckedAsset, options: AssetOptions) -> dg.AssetChecksDefinition:
    resource_key = resource_key_of(options)
    partitions_def = None  # files are checked where they are, whatever partitions a run has
    if asset.path is None:
        partitions_def = partitions_of_checks(asset.partitions, options.get("backfill_policy"))

    def _check(context: Any, dataops: DataOpsResource) -> Iterator[dg.AssetCheckResult]:
        yield from declared_results(context, asset, dataops)

    return dg.multi_asset_check(
        name=f"{asset.key.to_python_identifier()}__checks",
        description=f"Checks the published result of {asset.key.to_user_string()}.",
        specs=[with_partitions(check.spec(asset.key), partitions_def) for check in asset.checks],
        can_subset=True,
    )(with_resource(_check, resource_key))
