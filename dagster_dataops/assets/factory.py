"""build_operator_assets: a pipeline as assets, one a node."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_dataops.assets.configs import config_type_of, configured, resume_policy
from dagster_dataops.assets.io_manager import records_of
from dagster_dataops.assets.lineage import lineage_metadata
from dagster_dataops.assets.metadata import report_metadata
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import IO_MANAGER, Source, SourceAsset, source_asset
from dagster_dataops.assets.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writing import write_records
from dagster_dataops.graph.graph import SOURCE, OperatorGraph, OperatorNode
from dagster_dataops.services.pipeline import Pipeline


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
            dicts, or an upstream asset, whatever IO manager stores it: a list of dicts or a
            DataFrame serves as well as a handle of ours.
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
class _Wiring:
    """How an asset gets its inputs: through an IO manager by argument, or straight from a file.

    Attributes:
        ins: What IO managers load, by argument.
        inputs: Key of every input, with its argument or file, in order.
    """

    ins: Mapping[str, dg.AssetIn]
    inputs: Sequence[tuple[dg.AssetKey, str | Path]]

    def others(self, spec: dg.AssetSpec) -> list[dg.AssetDep]:
        """Return the dependencies that are not loaded: files, and what a translator added."""
        loaded = {given.key for given in self.ins.values()}
        return [dep for dep in spec.deps if dep.asset_key not in loaded]


def _wiring(node: OperatorNode, keys: Mapping[str, dg.AssetKey], origin: SourceAsset) -> _Wiring:
    ins: dict[str, dg.AssetIn] = {}
    inputs: list[tuple[dg.AssetKey, str | Path]] = []
    for name in node.inputs:
        if name == SOURCE and origin.path is not None:
            inputs.append((origin.key, origin.path))
        else:
            ins[f"input_{name}"] = dg.AssetIn(key=keys[name])
            inputs.append((keys[name], f"input_{name}"))
    return _Wiring(ins, inputs)


def _operator_asset(
    node: OperatorNode,
    spec: dg.AssetSpec,
    wiring: _Wiring,
    retry_policy: dg.RetryPolicy | None,
) -> dg.AssetsDefinition:
    config_type = config_type_of(node)

    @dg.asset(
        key=spec.key,
        ins=wiring.ins,
        deps=wiring.others(spec),
        description=spec.description,
        metadata=spec.metadata,
        group_name=spec.group_name,
        code_version=spec.code_version,
        owners=spec.owners,
        tags=spec.tags,
        automation_condition=spec.automation_condition,
        freshness_policy=spec.freshness_policy,
        partitions_def=spec.partitions_def,
        io_manager_key=IO_MANAGER,
        retry_policy=retry_policy,
    )
    def _materialize(
        context: dg.AssetExecutionContext,
        config: config_type,  # type: ignore[valid-type]
        dataops: DataOpsResource,
        **loaded: Any,
    ) -> dg.MaterializeResult[JsonlDataset]:
        operator = configured(node.operator, config)
        folder = dataops.folder(context.asset_key.path, _partition_of(context))
        upstream = _Upstream(folder)
        for key, given in wiring.inputs:
            upstream.add(key, loaded[given] if isinstance(given, str) else given)
        report = dataops.run(context, operator, upstream.datasets, folder, resume_policy(config))
        options = operator.__dataops__.options
        lineage = lineage_metadata(options, upstream.by_key, report.dataset)
        upstream.clean_up()
        return dg.MaterializeResult(
            value=report.dataset,
            metadata={**report_metadata(report), **lineage},
            data_version=dg.DataVersion(report.manifest.fingerprint),
        )

    return _materialize


def _partition_of(context: dg.AssetExecutionContext) -> str | None:
    if context.has_partition_key:
        return str(context.partition_key)
    if context.has_partition_key_range:
        text = "an operator works on one partition a run; backfill with a run for each of them"
        raise dg.Failure(text, allow_retries=False)
    return None


class _Upstream:
    """The inputs of a step as datasets, whatever the IO managers of their assets made of them."""

    def __init__(self, folder: NodeFolder) -> None:
        self.by_key: list[tuple[dg.AssetKey, JsonlDataset]] = []
        self._folder = folder
        self._spilled: list[Path] = []

    @property
    def datasets(self) -> list[JsonlDataset]:
        return [dataset for _, dataset in self.by_key]

    def add(self, key: dg.AssetKey, value: object) -> None:
        """Add a handle, a path, records or a DataFrame; several partitions one after another."""
        self.by_key.extend((key, self._dataset(part)) for part in _partitions(value))

    def _dataset(self, value: object) -> JsonlDataset:
        if isinstance(value, JsonlDataset):
            return value
        if isinstance(value, Path):
            return JsonlDataset.of_file(value)
        number = len(self._spilled) + 1
        self._spilled.append(self._folder.path / f"{self._folder.name}_upstream_{number}.jsonl")
        return write_records(self._spilled[-1], records_of(value), "upstream asset")

    def clean_up(self) -> None:
        for path in self._spilled:
            path.unlink(missing_ok=True)


def _partitions(value: object) -> Iterator[object]:
    if isinstance(value, Mapping) and all(isinstance(v, JsonlDataset) for v in value.values()):
        yield from value.values()
    else:
        yield value
