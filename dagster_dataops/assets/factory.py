"""build_operator_assets: a pipeline as assets, one a node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_dataops.assets.configs import config_type_of, configured, resume_policy
from dagster_dataops.assets.lineage import lineage_metadata
from dagster_dataops.assets.metadata import report_metadata
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import Source, SourceAsset, source_asset
from dagster_dataops.assets.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.graph.graph import SOURCE, OperatorGraph, OperatorNode
from dagster_dataops.services.pipeline import Pipeline

IO_MANAGER = "dataops_io"


def build_operator_assets(
    ppl: Pipeline,
    *,
    source: Source,
    translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return one asset a node, each after those it depends on, and the source's if it is ours.

    The definitions they go into need the resources ``dataops`` (`DataOpsResource`) and
    ``dataops_io`` (`DataOpsIOManager`); `build_definitions` adds them.

    Args:
        ppl: A complete pipeline.
        source: Where its records come from: the path of a jsonl file, a function that yields
            dicts, or an upstream asset.
        translator: Keys, groups and descriptions.
        retry_policy: Of every operator's step; a retry goes on where the attempt stopped.
    """
    graph = ppl.graph
    origin = source_asset(source, graph.name)
    specs = asset_specs(graph, origin.key, translator or DataOpsTranslator())
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = []
    if origin.definition is not None:
        assets.append(origin.definition)
    keys = {SOURCE: origin.key} | {name: spec.key for name, spec in specs.items()}
    for node in graph.ordered():
        wiring = _wiring(node, keys, origin)
        assets.append(_operator_asset(node, specs[node.name], wiring, retry_policy))
    return assets


def asset_specs(
    graph: OperatorGraph, source: dg.AssetKey, translator: DataOpsTranslator
) -> dict[str, dg.AssetSpec]:
    """Return the asset spec of every node, by node name."""
    keys = {SOURCE: source}
    specs: dict[str, dg.AssetSpec] = {}
    for node in graph.ordered():
        upstream = tuple(keys[name] for name in node.inputs)
        data = DataOpsTranslatorData(graph.name, node, upstream)
        specs[node.name] = translator.get_asset_spec(data)
        keys[node.name] = specs[node.name].key
    return specs


@dataclass(frozen=True, slots=True)
class JsonlDatasetAt:
    """A file that is opened when the step runs, not when it is defined."""

    path: str


@dataclass(frozen=True, slots=True)
class _Wiring:
    """How an asset gets its inputs: through the IO manager by argument, or straight from a file."""

    ins: Mapping[str, dg.AssetIn]
    deps: Sequence[dg.AssetKey]
    arguments: Sequence[str | JsonlDatasetAt]
    keys: Sequence[dg.AssetKey]


def _wiring(node: OperatorNode, keys: Mapping[str, dg.AssetKey], origin: SourceAsset) -> _Wiring:
    ins: dict[str, dg.AssetIn] = {}
    arguments: list[str | JsonlDatasetAt] = []
    deps: list[dg.AssetKey] = []
    for name in node.inputs:
        if name == SOURCE and origin.path is not None:
            deps = [origin.key]
            arguments.append(JsonlDatasetAt(str(origin.path)))
        else:
            ins.setdefault(f"input_{name}", dg.AssetIn(key=keys[name]))
            arguments.append(f"input_{name}")
    return _Wiring(ins, deps, arguments, [keys[name] for name in node.inputs])


def _operator_asset(
    node: OperatorNode,
    spec: dg.AssetSpec,
    wiring: _Wiring,
    retry_policy: dg.RetryPolicy | None,
) -> dg.AssetsDefinition:
    config_type = config_type_of(node)

    @dg.asset(
        key=spec.key,
        ins=dict(wiring.ins),
        deps=list(wiring.deps),
        description=spec.description,
        metadata=spec.metadata,
        group_name=spec.group_name,
        code_version=spec.code_version,
        owners=spec.owners,
        tags=spec.tags,
        automation_condition=spec.automation_condition,
        io_manager_key=IO_MANAGER,
        retry_policy=retry_policy,
    )
    def _materialize(
        context: dg.AssetExecutionContext,
        config: config_type,  # type: ignore[valid-type]
        dataops: DataOpsResource,
        **inputs: Any,
    ) -> dg.MaterializeResult[JsonlDataset]:
        datasets = [
            inputs[argument] if isinstance(argument, str) else JsonlDataset.of_file(argument.path)
            for argument in wiring.arguments
        ]
        partition = context.partition_key if context.has_partition_key else None
        report = dataops.run(
            context,
            configured(node.operator, config),
            datasets,
            dataops.folder(context.asset_key.path, partition),
            resume_policy(config),
        )
        return dg.MaterializeResult(
            value=report.dataset,
            metadata={
                **report_metadata(report),
                **lineage_metadata(
                    node.operator.__dataops__.options,
                    list(zip(wiring.keys, datasets, strict=True)),
                    report.dataset,
                ),
            },
            data_version=dg.DataVersion(report.manifest.fingerprint),
        )

    return _materialize
