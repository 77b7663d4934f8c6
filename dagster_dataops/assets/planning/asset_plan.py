"""AssetPlan: the asset spec of a node, and the origin of its inputs.

Both layouts, one step per operator and one step for a whole pipeline, are made from plans.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.check_partitions import partitions_of_checks, with_partitions
from dagster_dataops.assets.checks.check_results import CheckedAsset
from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import (
    ErrorRateCheck,
    check_nodes,
    error_rates_of,
)
from dagster_dataops.assets.checks.missing_columns import missing_columns_spec, needs_columns
from dagster_dataops.assets.inputs.path_pattern import SourceFile
from dagster_dataops.assets.launchpad.config_schema import config_field
from dagster_dataops.assets.metadata.metadata_keys import IO_MANAGER_KEY
from dagster_dataops.assets.planning.asset_options import (
    DATAOPS,
    AssetOptions,
    automation_condition_of,
    resource_key_of,
    root_of,
)
from dagster_dataops.assets.planning.check_translation import CheckTranslation
from dagster_dataops.assets.planning.described_columns import DescribedColumns
from dagster_dataops.assets.planning.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.assets.runtime.asset_paths import address_of
from dagster_dataops.assets.runtime.resource import DataOpsResource, io_manager_key
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.exporters.endings import names_file
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import ObjectUrl
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

PARTITION: Final = "{partition}"  # in the path of an export

_Input: TypeAlias = tuple[dg.AssetKey, str | SourceFile]


@dataclass(frozen=True)
class AssetPlan:
    """A node with its asset spec.

    Attributes:
        node: The operator node.
        spec: Spec of the translator, with dependencies added. Of a node with several results it is
            that of the first one; partitions, code version and dependencies are those of all of
            them.
        ins: Inputs that IO managers load, by argument.
        inputs: The key of every input in order, with its argument in ``ins`` or with its file. A
            pattern means one file per partition.
        error_rate: Check of failed records; ``None`` for an operator without it.
        checks: Declared checks that the operator's own step runs, because they block nodes of the
            same step; by the name of the result.
        outputs: The spec of each result of a node with several, by the name of its output.
        artefacts: Specs of the assets whose artefacts are options of the operator, by node.
        check_partitions: Partitions of the checks, if they have any.
        check_translation: What the translator makes of the specs of checks.
        columns: What the columns of results are.
        manager: Resource key of the IO manager, unless the translator names another one.
    """

    node: OperatorNode
    spec: dg.AssetSpec
    ins: Mapping[str, dg.AssetIn]
    inputs: Sequence[_Input]
    error_rate: ErrorRateCheck | None = None
    checks: Mapping[str, Sequence[DeclaredCheck]] = field(default_factory=dict)
    outputs: Mapping[str, dg.AssetSpec] = field(default_factory=dict)
    artefacts: Mapping[str, dg.AssetSpec] = field(default_factory=dict)
    check_partitions: dg.PartitionsDefinition | None = None
    check_translation: CheckTranslation = field(default_factory=lambda: CheckTranslation(""))
    columns: DescribedColumns = field(default_factory=DescribedColumns)
    manager: str = io_manager_key(DATAOPS)

    @property
    def results(self) -> dict[str, dg.AssetSpec]:
        """The spec of each result, by the name that other nodes use for it as an input."""
        if not self.outputs:
            return {self.node.name: self.spec}
        return {f"{self.node.name}.{name}": spec for name, spec in self.outputs.items()}

    @property
    def specs(self) -> list[dg.AssetSpec]:
        """The spec of each result."""
        return list(self.results.values())

    @property
    def arguments(self) -> dict[dg.AssetKey, str]:
        """The argument of each result in the steps of other nodes, by asset key."""
        return {spec.key: argument_of(name) for name, spec in self.results.items()}

    def folder(self, dataops: DataOpsResource, partition: str | None) -> NodeFolder:
        """Return the folder of the node, with those of its outputs if it has several results.

        The node's own folder is then the one that the outputs' folders are in.
        """
        if not self.outputs:
            return dataops.folder(self.spec.key.path, partition)
        places = {
            name: dataops.folder(spec.key.path, partition) for name, spec in self.outputs.items()
        }
        folder = dataops.folder(self.node_key, partition)
        return replace(folder, outputs=places)

    @property
    def node_key(self) -> list[str]:
        """The common prefix of the keys of all outputs; its last part is the name of the node."""
        parents = [spec.key.path[:-1] for spec in self.outputs.values()]
        same = takewhile(lambda parts: len(set(parts)) == 1, zip(*parents, strict=False))
        common = [parts[0] for parts in same]
        return common if common[-1:] == [self.node.name] else [*common, self.node.name]

    @property
    def checked_assets(self) -> list[CheckedAsset]:
        """Every result with the declared checks that the operator's own step runs."""
        return [
            CheckedAsset(spec.key, self.checks.get(name, ()), spec.partitions_def)
            for name, spec in self.results.items()
        ]

    @property
    def deps(self) -> list[dg.AssetDep]:
        """The dependencies that are not loaded: files, and those added by a translator."""
        loaded = {source.key for source in self.ins.values()}
        return [dep for dep in self.spec.deps if dep.asset_key not in loaded]

    @property
    def io_manager_key(self) -> str:
        """Resource key of the IO manager; a translator may name another IO manager."""
        return str(self.spec.metadata.get(IO_MANAGER_KEY, self.manager))

    @property
    def stored_specs(self) -> list[dg.AssetSpec]:
        """The spec of each result, each with the key of its IO manager."""
        return [
            spec if IO_MANAGER_KEY in spec.metadata else spec.with_io_manager_key(self.manager)
            for spec in self.specs
        ]

    @cached_property
    def config_field(self) -> dg.Field:
        """The field of the configuration of the node, equal in every step and job."""
        return config_field(self.node.operator)

    @cached_property
    def needs_columns(self) -> bool:
        """Whether it has the check ``missing_columns``."""
        return needs_columns(self.node.operator)

    @cached_property
    def error_rate_specs(self) -> dict[dg.AssetKey, dg.AssetCheckSpec]:
        """The spec of the check of failed records on each result, if they have it."""
        rate = self.error_rate
        if rate is None:
            return {}
        return self._translated(rate.spec, rate.fixed_severity)

    @cached_property
    def missing_columns_specs(self) -> dict[dg.AssetKey, dg.AssetCheckSpec]:
        """The spec of the check of missing columns on each result, if they have it."""
        if not self.needs_columns:
            return {}
        return self._translated(missing_columns_spec, dg.AssetCheckSeverity.WARN)

    def _translated(
        self,
        spec_of: Callable[[dg.AssetKey], dg.AssetCheckSpec],
        severity: dg.AssetCheckSeverity | None,
    ) -> dict[dg.AssetKey, dg.AssetCheckSpec]:
        outputs = {spec.key: name for name, spec in self.outputs.items()}
        return {
            spec.key: self.check_translation.spec(
                spec_of(spec.key),
                self.check_partitions,
                self.node,
                output=outputs.get(spec.key, ""),
                severity=severity,
            )
            for spec in self.specs
        }

    @cached_property
    def check_specs(self) -> list[dg.AssetCheckSpec]:
        """The specs of the checks that the operator's own step runs."""
        specs: list[dg.AssetCheckSpec] = []
        for asset in self.checked_assets:
            spec_options = (
                self.error_rate_specs.get(asset.key),
                self.missing_columns_specs.get(asset.key),
            )
            specs += [spec for spec in spec_options if spec is not None]
            specs += [
                with_partitions(check.spec(asset.key), self.check_partitions)
                for check in asset.checks
            ]
        self.check_translation.check_names(specs)
        return specs


@dataclass(frozen=True)
class SourceAsset:
    """The asset of a pipeline's source.

    Attributes:
        key: Asset key.
        definition: Asset or spec to add to the definitions; ``None`` for another's asset.
        path: File of an external asset, or a pattern for a file per partition.
        function: Function that yields the records, if the asset is made of one.
        plan: Plan of an asset that is written like the result of an operator: of a stream, or of
            combined assets.
        files: External assets of the files that such an asset reads.
    """

    key: dg.AssetKey
    definition: dg.AssetsDefinition | dg.AssetSpec | None
    path: SourceFile | None = None
    function: Callable[..., Any] | None = None
    plan: AssetPlan | None = None
    files: tuple[dg.AssetSpec, ...] = ()


def plan_assets(
    graph: OperatorGraph,
    origin: SourceAsset,
    translator: DataOpsTranslator,
    options: AssetOptions | None = None,
) -> list[AssetPlan]:
    """Return the plan of every node, each after the plans that it depends on.

    A node has the partitions of the pipeline, unless it is named in ``unpartitioned`` or all its
    inputs are unpartitioned. A translator may override that.

    Raises:
        PipelineDefinitionError: An option names an unknown node.
    """
    options = options or {}
    root = root_of(options)
    manager = io_manager_key(resource_key_of(options))
    unpartitioned = options.get("unpartitioned", ())
    condition = options.get("automation_condition")
    named = condition if isinstance(condition, Mapping) else ()
    check_nodes(graph, named, "automation_condition")
    check_nodes(graph, unpartitioned, "unpartitioned")
    rates = error_rates_of(graph, options.get("max_error_rate", ErrorRateCheck()))
    keys = {SOURCE: origin.key}
    checks = CheckTranslation.of(graph.name, translator)
    columns = DescribedColumns.of(graph, options.get("columns"), keys, origin.path)
    specs: dict[str, dg.AssetSpec] = {}
    whole: set[str] = set()
    plans: list[AssetPlan] = []
    for node in graph.ordered():
        if node.name in unpartitioned or whole.issuperset(node.inputs):
            whole |= {node.name, *node.results}
        data = DataOpsTranslatorData(
            pipeline=graph.name,
            node=node,
            upstream=tuple(keys[name] for name in node.inputs),
            artefacts=tuple(keys[name] for name in node.artefacts),
            partitions_def=None if node.name in whole else options.get("partitions_def"),
            automation_condition=automation_condition_of(options, node.name),
            freshness_policy=options.get("freshness_policy"),
        )
        results = {
            output: _completed(
                translator.get_asset_spec(replace(data, output=output) if output else data),
                data,
                root,
            )
            for output in node.operator.__dataops__.spec.outputs or ("",)
        }
        spec = next(iter(results.values()))
        _check_own_key(graph, node, results.values(), origin)
        artefacts = {name: specs[name] for name in node.artefacts}
        _check_export(graph, node, spec)
        _check_partitions(graph, node, spec, artefacts)
        ins, inputs = _inputs_of(data, spec, origin, options)
        plan = AssetPlan(
            node,
            spec,
            ins,
            inputs,
            rates[node.name],
            outputs=results if len(results) > 1 else {},
            artefacts=artefacts,
            check_partitions=partitions_of_checks(
                spec.partitions_def, options.get("backfill_policy")
            ),
            check_translation=checks,
            columns=columns,
            manager=manager,
        )
        plans.append(plan)
        keys |= {name: result.key for name, result in plan.results.items()}
        specs[node.name] = spec
    return plans


def _check_export(graph: OperatorGraph, node: OperatorNode, spec: dg.AssetSpec) -> None:
    output = node.operator.__dataops__.output
    if node.operator.__dataops__.spec.kind.exports:
        _check_partition_of_path(graph, node, spec)
    elif spec.partitions_def is not None and names_file(output):
        reason = (
            f"node {node.name!r} has partitions, but set_output names one file for all of them, "
            f"{output}; name a folder instead, and each partition is exported to "
            "<node>/<partition>.jsonl in it"
        )
        raise PipelineDefinitionError(graph.name, reason)


def _check_partition_of_path(graph: OperatorGraph, node: OperatorNode, spec: dg.AssetSpec) -> None:
    """Check that the path of an export names the partition exactly if there are partitions."""
    path = str(node.operator.__dataops__.output)
    named = PARTITION in path
    if named == (spec.partitions_def is not None):
        return
    reason = (
        f"has no partitions, but exports to {path}; leave {PARTITION} out of the path"
        if named
        else f"has partitions, but exports all of them to {path}; write {PARTITION} in the path "
        "where the name of the partition belongs"
    )
    raise PipelineDefinitionError(graph.name, f"node {node.name!r} {reason}")


def _check_own_key(
    graph: OperatorGraph,
    node: OperatorNode,
    results: Iterable[dg.AssetSpec],
    origin: SourceAsset,
) -> None:
    """Check that no result of a node has the asset key of the source."""
    for spec in results:
        if spec.key == origin.key:
            named = isinstance(origin.path, (Path, ObjectUrl))
            file = f", the file {origin.path}," if named else ""
            reason = (
                f"node {node.name!r} and its source{file} would be one asset, "
                f"{spec.key.to_user_string()}; give the node another name"
            )
            raise PipelineDefinitionError(graph.name, reason)


def _check_partitions(
    graph: OperatorGraph,
    node: OperatorNode,
    spec: dg.AssetSpec,
    artefacts: Mapping[str, dg.AssetSpec],
) -> None:
    for name, artefact in artefacts.items():
        if artefact.partitions_def not in (None, spec.partitions_def):
            reason = (
                f"node {node.name!r} takes the artefact {name!r} as an option, which has other "
                f"partitions than the node: one folder for each; add {name!r} to `unpartitioned`, "
                "so that it is built of all partitions"
            )
            raise PipelineDefinitionError(graph.name, reason)


def _completed(spec: dg.AssetSpec, data: DataOpsTranslatorData, root: Root | None) -> dg.AssetSpec:
    """Return ``spec`` with the dependencies and the address that the translator left out."""
    known = {dep.asset_key for dep in spec.deps}
    upstream = (*data.upstream, *data.artefacts)
    missing = dict.fromkeys(key for key in upstream if key not in known)
    address = _address(spec, data.node, root)
    metadata = {name: value for name, value in address.items() if name not in spec.metadata}
    if not missing and not metadata:
        return spec
    return spec.merge_attributes(deps=list(missing), metadata=metadata)


def _address(spec: dg.AssetSpec, node: OperatorNode, root: Root | None) -> dict[str, str]:
    """Return the URI of a result whose materializations do not have it: of one with partitions."""
    kind = node.operator.__dataops__.spec.kind
    known_later = kind.exports or spec.partitions_def is None
    return {} if known_later else address_of(spec, root, kind)


def argument_of(result: str) -> str:
    """Return the argument by which a step takes a result, such as ``input_split__train``."""
    return f"input_{result.replace('.', '__')}"


def _inputs_of(
    data: DataOpsTranslatorData, spec: dg.AssetSpec, origin: SourceAsset, options: AssetOptions
) -> tuple[dict[str, dg.AssetIn], list[_Input]]:
    """Return ``ins`` and ``inputs`` of the plan of a node."""
    ins: dict[str, dg.AssetIn] = {}
    inputs: list[_Input] = []
    mappings = {dep.asset_key: dep.partition_mapping for dep in spec.deps}
    skips = bool(options.get("allow_missing_partitions")) and spec.partitions_def is None
    for name, key in zip(data.node.inputs, data.upstream, strict=True):
        if name == SOURCE and origin.path is not None:
            inputs.append((key, origin.path))
        else:
            ins[argument_of(name)] = dg.AssetIn(
                key=key,
                metadata={"allow_missing_partitions": True} if skips else None,
                partition_mapping=mappings.get(key),
            )
            inputs.append((key, argument_of(name)))
    return ins, inputs
