"""operator_step: an asset in its own step, from the plan of one operator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

import dagster as dg

from dagster_dataops.assets.inputs.io_manager import OPERATOR_INPUT
from dagster_dataops.assets.launchpad.config_schema import LazyField
from dagster_dataops.assets.metadata.metadata_keys import IO_MANAGER_KEY
from dagster_dataops.assets.planning.asset_options import DATAOPS, AssetOptions, resource_key_of
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.planning.execute_hook import ExecuteHook
from dagster_dataops.assets.runtime.resource import io_manager_key
from dagster_dataops.assets.runtime.step_context import Work
from dagster_dataops.assets.steps.step_body import Body, body_of, step_function
from dagster_dataops.foundation.override import override

_LOADED: Final = dg.In(OPERATOR_INPUT)
_WAITED: Final = dg.In(dg.Nothing)  # an input that is not loaded
_CHECKED: Final = dg.Out(dg.Nothing, is_required=False)  # the output of a check


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Dagster's options of a step."""

    retry_policy: dg.RetryPolicy | None = None
    pool: str | None = None
    op_tags: Mapping[str, Any] | None = None
    backfill_policy: dg.BackfillPolicy | None = None
    resource_key: str = DATAOPS
    hook: ExecuteHook | None = None

    @classmethod
    def of(cls, options: AssetOptions, hook: ExecuteHook | None = None) -> Self:
        """Return the options for each step from the options of a pipeline."""
        return cls(
            hook=hook,
            retry_policy=options.get("retry_policy"),
            backfill_policy=options.get("backfill_policy"),
            resource_key=resource_key_of(options),
        )

    @cached_property
    def body(self) -> Body:
        """The body of the step, with the resource as an argument."""
        return body_of(self.resource_key, self.hook)

    @cached_property
    def held_body(self) -> Body:
        """The body of a step that takes the resource from its IO manager."""
        return body_of(self.resource_key, self.hook, held=True)

    def of_node(self, pool: str | None, op_tags: Mapping[str, Any] | None) -> Self:
        """Return the options of one node: these with its pool and tags."""
        if pool is None and op_tags is None:
            return self
        return replace(self, pool=pool, op_tags=op_tags)

    def backfills(self, spec: dg.AssetSpec) -> dg.BackfillPolicy | None:
        """Return the backfill policy of an asset; ``None`` if it is not partitioned."""
        return None if spec.partitions_def is None else self.backfill_policy


class OperatorAssets(dg.AssetsDefinition):
    """The assets of a step that takes the resource from its IO manager.

    Each snapshot of Dagster lists each use of each resource by each step: the step does not require
    the resource as well. A unit test has no IO manager. It calls the same step with the resource as
    an argument, which is made by need.
    """

    def __init__(
        self, *, called: Callable[[], dg.AssetsDefinition] | None = None, **options: Any
    ) -> None:
        """Make the assets; ``called`` returns the same step with the resource as an argument."""
        super().__init__(**options)
        self._called = called

    @override
    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the step in a unit test."""
        called = self._called
        return super().__call__(*args, **kwargs) if called is None else called()(*args, **kwargs)


def operator_step(plan: AssetPlan, options: StepOptions) -> dg.AssetsDefinition:
    """Return the asset of a plan, which its own step materializes.

    It is built from `dg.op`. `dg.asset` takes twice the time, and builds a new config schema,
    although most operators share one.
    """
    step = _asset_options(plan, options)
    if plan.io_manager_key != io_manager_key(options.resource_key):
        return dg.AssetsDefinition(**step, node_def=_op_of(plan, options, options.body, step))

    def called() -> dg.AssetsDefinition:
        return dg.AssetsDefinition(**step, node_def=_op_of(plan, options, options.body, step))

    op = _op_of(plan, options, options.held_body, step)
    return OperatorAssets(called=called, **step, node_def=op)


def _op_of(
    plan: AssetPlan, options: StepOptions, body: Body, assets: Mapping[str, Any]
) -> dg.OpDefinition:
    """Return the op of a step, with the outputs of ``assets`` from `_asset_options`."""
    spec = plan.spec
    loaded = _loaded(plan)
    ins = {name: _in_of(plan.ins[name]) for name in loaded}
    outs = {
        name: _out_of(spec, plan.io_manager_key)
        for name, spec in zip(assets["keys_by_output_name"], assets["specs"], strict=True)
    }
    return dg.op(
        name=_name_of(plan),
        ins={**ins, **dict.fromkeys(_waited(plan), _WAITED)},
        out={**outs, **dict.fromkeys(assets["check_specs_by_output_name"], _CHECKED)},
        description=spec.description,
        config_schema=LazyField(lambda: plan.config_field),
        tags=options.op_tags,
        retry_policy=options.retry_policy,
        code_version=spec.code_version,
        pool=options.pool,
    )(step_function(body, _work_of(plan), tuple(loaded), OPERATOR_INPUT))


def _asset_options(plan: AssetPlan, options: StepOptions) -> dict[str, Any]:
    """Return options of the assets of a step."""
    checks = {check.get_python_identifier(): check for check in plan.check_specs}
    outs = plan.outputs or {"result": plan.spec}
    return {
        "keys_by_input_name": {**_loaded(plan), **_waited(plan)},
        "keys_by_output_name": {name: out.key for name, out in outs.items()},
        "specs": list(map(_without_manager, plan.specs)),
        "check_specs_by_output_name": checks,
        # A run may select only an asset or only its check. All results of a node are made together.
        "can_subset": bool(checks) or len(outs) > 1,
        "backfill_policy": options.backfills(plan.spec),
    }


def _loaded(plan: AssetPlan) -> dict[str, dg.AssetKey]:
    """Return the inputs that IO managers load, by argument."""
    return {argument: key for key, argument in plan.inputs if isinstance(argument, str)}


def _waited(plan: AssetPlan) -> dict[str, dg.AssetKey]:
    """Return the inputs that are not loaded, by name."""
    return {dep.asset_key.to_python_identifier(): dep.asset_key for dep in plan.deps}


def _name_of(plan: AssetPlan) -> str:
    """Return the name of the op: that of its asset, or the common prefix of its assets."""
    if not plan.outputs:
        return plan.spec.key.to_python_identifier()
    return dg.AssetKey(plan.node_key).to_python_identifier()


def _without_manager(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Return a spec without the key of the IO manager, which the output of its step has."""
    if IO_MANAGER_KEY not in spec.metadata:
        return spec
    metadata = {name: value for name, value in spec.metadata.items() if name != IO_MANAGER_KEY}
    return spec.replace_attributes(metadata=metadata)


def _in_of(wanted: dg.AssetIn) -> dg.In:
    return dg.In(OPERATOR_INPUT, metadata=wanted.metadata) if wanted.metadata else _LOADED


def _out_of(spec: dg.AssetSpec, io_manager_key: str) -> dg.Out:
    return dg.Out(
        is_required=False,  # a preview materializes nothing
        io_manager_key=io_manager_key,
        metadata=spec.metadata,
        code_version=spec.code_version,
    )


def _work_of(plan: AssetPlan) -> Callable[[Mapping[str, Any], Mapping[str, Any]], Work]:
    def work(config: Mapping[str, Any], loaded: Mapping[str, Any]) -> Work:
        from dagster_dataops.assets.steps.step_work import StepWork  # the engine; loaded by use

        return StepWork([plan], {plan.node.name: config}, loaded)

    return work
