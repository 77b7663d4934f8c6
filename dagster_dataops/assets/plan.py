"""AssetPlan: a node on its way to becoming an asset: its spec, and where its inputs come from.

Every layout, one step an operator or one for a whole pipeline, is made from the same plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.sources import IO_MANAGER, SourceAsset
from dagster_dataops.assets.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.graph.graph import SOURCE, OperatorGraph, OperatorNode

_IO_MANAGER_METADATA = "dagster/io_manager_key"  # where AssetSpec.with_io_manager_key puts it


@dataclass(frozen=True, slots=True)
class AssetPlan:
    """What becomes one asset.

    Attributes:
        node: The operator node.
        spec: As the translator made it, with what its node depends on and its IO manager.
        ins: What IO managers load for it, by argument.
        inputs: Key of every input, with its argument in ``ins`` or its file, in order.
        check_specs: The checks whose results the operator's own step yields.
    """

    node: OperatorNode
    spec: dg.AssetSpec
    ins: Mapping[str, dg.AssetIn]
    inputs: Sequence[tuple[dg.AssetKey, str | Path]]
    check_specs: Sequence[dg.AssetCheckSpec] = ()

    @property
    def deps(self) -> list[dg.AssetDep]:
        """The dependencies that are not loaded: files, and what a translator added."""
        loaded = {given.key for given in self.ins.values()}
        return [dep for dep in self.spec.deps if dep.asset_key not in loaded]

    @property
    def io_manager_key(self) -> str:
        """Who stores the result; a translator may name another than ours."""
        return str(self.spec.metadata[_IO_MANAGER_METADATA])


def plan_assets(
    graph: OperatorGraph, origin: SourceAsset, translator: DataOpsTranslator
) -> list[AssetPlan]:
    """Return the plan of every node, each after those it depends on."""
    keys = {SOURCE: origin.key}
    plans: list[AssetPlan] = []
    for node in graph.ordered():
        upstream = tuple(keys[name] for name in node.inputs)
        spec = translator.get_asset_spec(DataOpsTranslatorData(graph.name, node, upstream))
        plans.append(_plan(node, _completed(spec, upstream), keys, origin))
        keys[node.name] = spec.key
    return plans


def _completed(spec: dg.AssetSpec, upstream: Sequence[dg.AssetKey]) -> dg.AssetSpec:
    """Return ``spec`` with the dependencies that its node has whatever a translator says."""
    known = {dep.asset_key for dep in spec.deps}
    missing = dict.fromkeys(key for key in upstream if key not in known)
    if missing:
        spec = spec.merge_attributes(deps=list(missing))
    return spec if _IO_MANAGER_METADATA in spec.metadata else spec.with_io_manager_key(IO_MANAGER)


def _plan(
    node: OperatorNode, spec: dg.AssetSpec, keys: Mapping[str, dg.AssetKey], origin: SourceAsset
) -> AssetPlan:
    ins: dict[str, dg.AssetIn] = {}
    inputs: list[tuple[dg.AssetKey, str | Path]] = []
    for name in node.inputs:
        if name == SOURCE and origin.path is not None:
            inputs.append((origin.key, origin.path))
        else:
            ins[f"input_{name}"] = dg.AssetIn(key=keys[name])
            inputs.append((keys[name], f"input_{name}"))
    return AssetPlan(node, spec, ins, inputs)
