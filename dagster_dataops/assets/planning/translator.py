"""DataOpsTranslator: maps operator nodes to asset specs, and checks; runs their steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_dataops.assets.metadata.code_references import code_references
from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import (
    CANNOT_BE_RESUMED,
    KIND,
    OPERATOR,
    OPTIONS,
    OUTPUT,
)
from dagster_dataops.assets.planning.descriptions import described, first_paragraph
from dagster_dataops.assets.planning.run_tags import is_whole_tag, operator_tag
from dagster_dataops.assets.runtime.asset_paths import key_of
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent
from dagster_dataops.checkpoints.folder.run_fingerprint import (
    unknown_constants,
    unknown_options,
)
from dagster_dataops.operators.definition.shown_options import chosen_options, shown_value
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from dagster_dataops.pipelines.graph.operator_node import OperatorNode


@dataclass(frozen=True, slots=True)
class DataOpsTranslatorData:
    """An operator node and the options of its asset.

    Attributes:
        pipeline: Name of the pipeline; may be empty.
        node: The operator node.
        upstream: Keys of its input assets, in order.
        artefacts: Keys of the assets whose artefacts are options of the operator.
        partitions_def: Partitions of the pipeline, ``None`` for an unpartitioned node.
        automation_condition: Automation condition of this node.
        freshness_policy: Freshness policy of the pipeline.
        output: Name of the output; empty for a node with one result.
    """

    pipeline: str
    node: OperatorNode
    upstream: tuple[dg.AssetKey, ...]
    artefacts: tuple[dg.AssetKey, ...] = ()
    partitions_def: dg.PartitionsDefinition | None = None
    automation_condition: dg.AutomationCondition[dg.AssetKey] | None = None
    freshness_policy: dg.FreshnessPolicy | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class DataOpsCheckData:
    """A check of a result, with the spec that it has by default.

    Attributes:
        pipeline: Name of the pipeline; may be empty.
        spec: The default spec: key of the asset, name, description, whether the check blocks. Its
            metadata ``dagster_dataops/severity`` is the severity of a failure, unless that depends
            on the share of failed records.
        node: The operator node; ``None`` for a check of the source.
        output: Name of the output; empty for a node with one result.
        declared: Whether it is one of ``checks=``. The others are ``failed_records`` and
            ``missing_columns``, which come from the counts of the run.
    """

    pipeline: str
    spec: dg.AssetCheckSpec
    node: OperatorNode | None = None
    output: str = ""
    declared: bool = False


class DataOpsTranslator:
    """Maps operators to assets and checks, and runs their steps. Override a method to change that.

    Example:
        .. code-block:: python

            class Named(DataOpsTranslator):
                def get_asset_spec(self, data):
                    spec = super().get_asset_spec(data)
                    return spec.replace_attributes(group_name="corpus", owners=["team:data"])
    """

    def get_asset_spec(self, data: DataOpsTranslatorData) -> dg.AssetSpec:
        """Return the spec of one operator node, or of one output of a node with several results.

        By default the key is ``[pipeline, node]`` or ``[pipeline, node, output]``, the group the
        pipeline's name, the description the operator's docstring as Markdown, the code version a
        digest of its source. The tag ``dagster_dataops/operator`` names the operator.
        """
        node = data.node
        invocation = node.operator.__dataops__
        return dg.AssetSpec(
            key=dg.AssetKey([*key_of(data.pipeline, node.name), *filter(None, [data.output])]),
            deps=list(dict.fromkeys([*data.upstream, *data.artefacts])),
            description=description_of(invocation.spec),
            group_name=data.pipeline or "dataops",
            code_version=code_version(invocation),
            kinds={"python", _format_of(invocation)},
            tags=operator_tag(invocation.spec.reference),
            metadata={
                **definition_metadata(node),
                **({OUTPUT: data.output} if data.output else {}),
            },
            partitions_def=data.partitions_def,
            automation_condition=data.automation_condition,
            freshness_policy=data.freshness_policy,
        )

    def get_asset_check_spec(self, data: DataOpsCheckData) -> dg.AssetCheckSpec:
        """Return the spec of one check: by default ``data.spec``.

        It is called for ``failed_records`` and ``missing_columns`` of every operator that has them,
        and for every declared check. Results have the name of the returned spec, block as it says,
        and have the severity of its metadata ``dagster_dataops/severity``. ``max_error_rate=None``
        leaves ``failed_records`` out, and ``_missing="allow"`` the check ``missing_columns``.

        Example:
            .. code-block:: python

                class Checked(DataOpsTranslator):
                    def get_asset_check_spec(self, data):
                        spec = super().get_asset_check_spec(data)
                        if spec.name != "failed_records":
                            return spec
                        return dg.AssetCheckSpec(
                            "quality_gate",
                            asset=spec.asset_key,
                            description=f"{spec.description} Runbook: https://wiki/quality",
                            blocking=True,
                            metadata={"dagster_dataops/severity": "ERROR", "team": "data"},
                        )
        """
        return data.spec

    def execute(self, context: StepContext, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run the operators of one step, and yield the events of each as it finishes.

        Override it to do something before or after them: fetch a secret, send a message, open a
        sandbox. It is called once in each step: for each operator, or for all of them with
        ``layout="single_step"``; for a source that is a function or a stream; and in the preview
        job, with the context of an op and no events. It is not called where the step has a body of
        yours, in `dataops_assets`, nor in the steps of declared checks and of the report.

        Arguments without a default after ``dataops`` are keys of resources, as in ``def
        execute(self, context, dataops, slack)``.

        Example:
            .. code-block:: python

                class Announced(DataOpsTranslator):
                    def execute(self, context, dataops):
                        try:
                            yield from super().execute(context, dataops)
                        except Exception as error:
                            context.log.error(f"tell the team: {error}")
                            raise
        """
        yield from dataops.run(context)


def _format_of(invocation: Invocation) -> str:
    """Return the kind of the asset of a result."""
    spec = invocation.spec
    if spec.kind.exports:
        return str(getattr(spec.target, "format", spec.name.lower()))
    return spec.kind.name if spec.kind.makes_folder else "json"


def code_version(invocation: Invocation) -> str:
    """Return the code version of an operator's asset: digests of its source and its options."""
    return f"{invocation.spec.code_version[:12]}-{invocation.options_digest[:8]}"


def description_of(spec: OperatorSpec) -> str | None:
    """Return the description of an operator's asset: its docstring as Markdown.

    Of an operator of the library it is the first paragraph: the catalogue has the whole text,
    which a definition with hundreds of nodes would repeat for each of them.
    """
    if not _in_library(spec):
        return described(spec.description)
    return described(f"{first_paragraph(spec.description)}\n\nMore: `help({spec.reference})`.")


def _is_special(spec: OperatorSpec) -> bool:
    """Return whether an operator of the user is of another kind than most: no record operator."""
    is_usual = spec.kind.usual and spec.kind_text == spec.kind.text  # not of a chain
    return not is_usual and not _in_library(spec)


def _in_library(spec: OperatorSpec) -> bool:
    return spec.place.startswith("dagster_dataops.library.")


def definition_metadata(node: OperatorNode) -> Mapping[str, Any]:
    """Return the metadata of a node before it runs: what its pipeline chose, and its source.

    What is as in the definition of the operator is left out, because each entry costs memory and
    time in every process that holds the definitions. The tag of the asset names the operator; if a
    tag cannot hold the name, an entry does. The source of an operator of the library is not shown.
    """
    invocation = node.operator.__dataops__
    spec = invocation.spec
    options = options_table(invocation)
    unknown = "; ".join(filter(None, [unknown_options(invocation), unknown_constants(invocation)]))
    return {
        **({} if is_whole_tag(spec.reference) else {OPERATOR: spec.reference}),
        **({KIND: spec.kind_text} if _is_special(spec) else {}),
        **({OPTIONS: dg.MetadataValue.md(options)} if options else {}),
        **({CANNOT_BE_RESUMED: unknown} if unknown else {}),
        **({} if _in_library(spec) else code_references(*spec.targets)),
    }


def options_table(invocation: Invocation) -> str:
    """Return a Markdown table of what was chosen: options and settings, with their defaults.

    Options without a default are always chosen. The table is empty if everything is the default.
    """
    rows: list[tuple[object, ...]] = [
        (name, _quoted(option.value), "" if option.required else _quoted(option.default))
        for name, option in chosen_options(invocation).items()
    ]
    settings = {f"_{name}": value for name, value in _chosen(invocation)}
    rows += [(name, _quoted(shown_value(name, value)), "") for name, value in settings.items()]
    if any(default != "" for _, _, default in rows):
        return table(["option", "value", "default"], rows)
    return table(["option", "value"], [row[:2] for row in rows]) if rows else ""


def _chosen(invocation: Invocation) -> list[tuple[str, object]]:
    """Return the settings that the node or the operator sets, without defaults of the library."""
    spec = invocation.spec
    known = spec.settings.set_values() if _in_library(spec) else {}
    settings = invocation.settings.set_values()
    if not settings.get("max_workers"):  # 0 is the default, too
        settings.pop("max_workers", None)
    return [(name, value) for name, value in settings.items() if known.get(name) != value]


def _quoted(value: object) -> object:
    """Return a value for a table cell; the empty string is quoted."""
    return '""' if value == "" else value
