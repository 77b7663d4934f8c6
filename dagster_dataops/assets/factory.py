"""build_operator_assets: a pipeline as assets, one a node."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from dagster_dataops.assets.configs import config_type_of
from dagster_dataops.assets.error_rate import ErrorRateCheck, ErrorRates, error_rates_of
from dagster_dataops.assets.plan import AssetPlan, plan_assets
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import IO_MANAGER, Source, source_asset
from dagster_dataops.assets.step import StepEvent, run_step
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.services.pipeline import Pipeline


def build_operator_assets(
    ppl: Pipeline,
    *,
    source: Source,
    translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return one asset a node, each after those it depends on, and the source's if it is ours.

    The definitions they go into need the resources ``dataops`` (`DataOpsResource`) and
    ``dataops_io`` (`DataOpsIOManager`); `build_definitions` adds them.

    Args:
        ppl: A complete pipeline.
        source: Where its records come from: the path of a jsonl file, a function that yields
            dicts, or an upstream asset, whatever IO manager stores it: a list of dicts or a
            DataFrame serves as well as a handle of ours.
        translator: Keys, groups and descriptions.
        retry_policy: Of every operator's step; a retry goes on where the attempt stopped.
        max_error_rate: Which share of an operator's records may fail before its check
            ``failed_records`` does not pass: a number in [0, 1], an `ErrorRateCheck`, or either of
            them by node. By default any failed record is a warning. ``None``: no such check.
    """
    graph = ppl.graph
    origin = source_asset(source, graph.name)
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = []
    if origin.definition is not None:
        assets.append(origin.definition)
    rates = error_rates_of(graph, max_error_rate)
    plans = plan_assets(graph, origin, translator or DataOpsTranslator(), rates)
    return [*assets, *(_operator_asset(plan, retry_policy) for plan in plans)]


def _operator_asset(plan: AssetPlan, retry_policy: dg.RetryPolicy | None) -> dg.AssetsDefinition:
    config_type, spec = config_type_of(plan.node), plan.spec
    loaded = [dg.AssetDep(given.key) for given in plan.ins.values() if given.key is not None]

    @dg.multi_asset(  # whose checks, unlike those of dg.asset, may be left out of a run
        name=spec.key.to_python_identifier(),
        specs=[spec.replace_attributes(deps=[*plan.deps, *loaded]).with_io_manager_key(IO_MANAGER)],
        ins=plan.ins,
        check_specs=plan.check_specs,
        can_subset=True,
        retry_policy=retry_policy,
    )
    def _materialize(
        context: dg.AssetExecutionContext,
        config: config_type,  # type: ignore[valid-type]
        dataops: DataOpsResource,
        **loaded: Any,
    ) -> Iterator[StepEvent]:
        yield from run_step(context, plan, config, dataops, loaded)

    return _materialize
