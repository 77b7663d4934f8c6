"""AssetPlan: a node on its way to becoming an asset: its spec, and where its inputs come from.

Every layout, one step an operator or one for a whole pipeline, is made from the same plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import (
    ErrorRateCheck,
    error_rate_specs,
    error_rates_of,
)
from dagster_dataops.assets.inputs.path_pattern import PathPattern
from dagster_dataops.assets.launchpad.config_schema import Schema, config_schema
from dagster_dataops.assets.planning.asset_options import (
    AssetOptions,
    automation_condition_of,
    named_nodes,
    root_of,
)
from dagster_dataops.assets.planning.source_assets import IO_MANAGER, SourceAsset
from dagster_dataops.assets.planning.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.assets.runtime.asset_paths import address_of
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.graph import SOURCE, OperatorGraph, OperatorNode

_IO_MANAGER_METADATA = "dagster/io_manager_key"  # where AssetSpec.with_io_manager_key puts it


@dataclass(frozen=True)
class AssetPlan:
    """What becomes one asset.

    Attributes:
        node: The operator node.
        spec: As the translator made it, with what its node depends on and its IO manager.
        ins: What IO managers load for it, by argument.
        inputs: Key of every input, with its argument in ``ins`` or its file, in order; a pattern
            stands for a file each partition.
        error_rate: How many of its records may fail; ``None`` for an operator without that check.
        checks: Declared ones that its own step makes, since what they hold up is in that step.
    """

    node: OperatorNode
    spec: dg.AssetSpec
    ins: Mapping[str, dg.AssetIn]
    inputs: Sequence[tuple[dg.AssetKey, str | Path | PathPattern]]
    error_rate: ErrorRateCheck | None = None
    checks: Sequence[DeclaredCheck] = ()

    @property
    def deps(self) -> list[dg.AssetDep]:
        """The dependencies that are not loaded: files, and what a translator added."""
        loaded = {given.key for given in self.ins.values()}
        return [dep for dep in self.spec.deps if dep.asset_key not in loaded]

    @property
    def io_manager_key(self) -> str:
        """Who stores the result; a translator may name another than ours."""
        return str(self.spec.metadata[_IO_MANAGER_METADATA])

    @cached_property
    def config_schema(self) -> Schema:
        """The fields of its configuration, in whatever step or job it is."""
        return config_schema(self.node)

    @property
    def check_specs(self) -> list[dg.AssetCheckSpec]:
        """The checks whose results the operator's own step yields."""
        key = self.spec.key
        own = [check.spec(key) for check in self.checks]
        return [*error_rate_specs(key, self.error_rate), *own]


def plan_assets(
    graph: OperatorGraph,
    origin: SourceAsset,
    translator: DataOpsTranslator,
    options: AssetOptions | None = None,
) -> list[AssetPlan]:
    """Return the plan of every node, each after those it depends on.

    A node has the pipeline's partitions unless it is named as unpartitioned, or takes nothing but
    the results of unpartitioned nodes. What a translator says of partitions stands.

    Raises:
        PipelineDefinitionError: An option names a node that there is not.
    """
    options = options or {}
    _check_named(graph, options)
    rates = error_rates_of(graph, options.get("max_error_rate", ErrorRateCheck()))
    keys = {SOURCE: origin.key}
    whole: set[str] = set()
    plans: list[AssetPlan] = []
    for node in graph.ordered():
        if node.name in options.get("unpartitioned", ()) or whole.issuperset(node.inputs):
            whole.add(node.name)
        data = DataOpsTranslatorData(
            pipeline=graph.name,
            node=node,
            upstream=tuple(keys[name] for name in node.inputs),
            partitions_def=None if node.name in whole else options.get("partitions_def"),
            automation_condition=automation_condition_of(options, node.name),
            freshness_policy=options.get("freshness_policy"),
        )
        spec = _completed(translator.get_asset_spec(data), data.upstream, root_of(options))
        _check_export(graph, node, spec)
        plan = _plan(data, spec, origin, options)
        plans.append(replace(plan, error_rate=rates[node.name]))
        keys[node.name] = spec.key
    return plans


def _check_export(graph: OperatorGraph, node: OperatorNode, spec: dg.AssetSpec) -> None:
    output = node.operator.__dataops__.output
    if spec.partitions_def is not None and output is not None and output.suffix == ".jsonl":
        reason = (
            f"node {node.name!r} has partitions, and set_output names one file for all of them, "
            f"{output}; name a folder: each partition is a file <node>/<partition>.jsonl in it"
        )
        raise PipelineDefinitionError(graph.name, reason)


def _completed(
    spec: dg.AssetSpec, upstream: Sequence[dg.AssetKey], root: Path | None
) -> dg.AssetSpec:
    """Return ``spec`` with what its asset has whatever a translator says.

    Its node's dependencies, and, where the translator names no others, our IO manager and the
    address of its result.
    """
    known = {dep.asset_key for dep in spec.deps}
    missing = dict.fromkeys(key for key in upstream if key not in known)
    metadata = {_IO_MANAGER_METADATA: IO_MANAGER, **address_of(spec, root)}
    return spec.merge_attributes(
        deps=list(missing),
        metadata={name: value for name, value in metadata.items() if name not in spec.metadata},
    )


def _check_named(graph: OperatorGraph, options: AssetOptions) -> None:
    wrong = sorted(named_nodes(options) - graph.nodes.keys())
    if wrong:
        known = ", ".join(graph.nodes)
        reason = (
            f"unpartitioned or automation_condition name no node of it: {', '.join(wrong)}; "
            f"nodes: {known}"
        )
        raise PipelineDefinitionError(graph.name, reason)


def _plan(
    data: DataOpsTranslatorData, spec: dg.AssetSpec, origin: SourceAsset, options: AssetOptions
) -> AssetPlan:
    ins: dict[str, dg.AssetIn] = {}
    inputs: list[tuple[dg.AssetKey, str | Path | PathPattern]] = []
    mappings = {dep.asset_key: dep.partition_mapping for dep in spec.deps}
    skips = bool(options.get("allow_missing_partitions")) and spec.partitions_def is None
    for name, key in zip(data.node.inputs, data.upstream, strict=True):
        if name == SOURCE and origin.path is not None:
            inputs.append((key, origin.path))
        else:
            ins[f"input_{name}"] = dg.AssetIn(
                key=key,
                metadata={"allow_missing_partitions": True} if skips else None,
                partition_mapping=mappings.get(key),
            )
            inputs.append((key, f"input_{name}"))
    return AssetPlan(data.node, spec, ins, inputs)
