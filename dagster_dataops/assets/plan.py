"""AssetPlan: a node on its way to becoming an asset: its spec, and where its inputs come from.

Every layout, one step an operator or one for a whole pipeline, is made from the same plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.places import located
from dagster_dataops.assets.sources import SourceAsset
from dagster_dataops.assets.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.graph.graph import SOURCE, OperatorGraph, OperatorNode


@dataclass(frozen=True, slots=True)
class AssetPlan:
    """What becomes one asset.

    Attributes:
        node: The operator node.
        spec: As the translator made it.
        ins: What IO managers load for it, by argument.
        inputs: Key of every input, with its argument in ``ins`` or its file, in order.
    """

    node: OperatorNode
    spec: dg.AssetSpec
    ins: Mapping[str, dg.AssetIn]
    inputs: Sequence[tuple[dg.AssetKey, str | Path]]

    @property
    def deps(self) -> list[dg.AssetDep]:
        """The dependencies that are not loaded: files, and what a translator added."""
        loaded = {given.key for given in self.ins.values()}
        return [dep for dep in self.spec.deps if dep.asset_key not in loaded]


def plan_assets(
    graph: OperatorGraph,
    origin: SourceAsset,
    translator: DataOpsTranslator,
    root: Path | None = None,
) -> list[AssetPlan]:
    """Return the plan of every node, each after those it depends on.

    Args:
        graph: What becomes assets.
        origin: The asset of its source.
        translator: Makes the specs.
        root: Folder of all results, where it is known before a run.
    """
    keys = {SOURCE: origin.key}
    plans: list[AssetPlan] = []
    for node in graph.ordered():
        upstream = tuple(keys[name] for name in node.inputs)
        data = DataOpsTranslatorData(graph.name, node, upstream)
        spec = located(translator.get_asset_spec(data), root)
        plans.append(_plan(node, spec, keys, origin))
        keys[node.name] = spec.key
    return plans


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
