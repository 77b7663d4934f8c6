"""PipelineAttributes: what a defs.yaml says of a pipeline, field by field."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import dagster as dg
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver

from dagster_dataops.assets.automation.sensors import NewFiles
from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import ErrorRates
from dagster_dataops.assets.components.check_fields import (
    CheckModel,
    ErrorRateField,
    YamlChecks,
    YamlErrorRate,
    constructed,
    rate_of,
    resolve_checks,
    resolve_error_rate,
)
from dagster_dataops.assets.components.operator_declaration import (
    OperatorDeclaration,
    OperatorNodeModel,
    resolve_nodes,
)
from dagster_dataops.assets.components.partition_fields import (
    NewFilesModel,
    OpModel,
    PartitionsModel,
    PipelineOp,
    resolve_new_files,
    resolve_op,
    resolve_partitions,
)
from dagster_dataops.assets.components.pipeline_fields import (
    ResourceModel,
    RetryPolicyModel,
    SourceFunction,
    SourceModel,
    resolve_resource,
    resolve_retry_policy,
    resolve_source,
)
from dagster_dataops.assets.planning.source_assets import Source  # noqa: TC001 - Dagster reads it
from dagster_dataops.assets.planning.translator import DataOpsTranslatorData
from dagster_dataops.assets.runtime.resource import DataOpsResource  # noqa: TC001 - Dagster reads it
from dagster_dataops.graph.graph import SOURCE


def _names_in_translation(data: DataOpsTranslatorData) -> dict[str, Any]:
    spec = data.node.operator.__dataops__.spec
    return {"node": data.node, "operator": spec, "pipeline": data.pipeline}


@dataclass(kw_only=True)
class PipelineAttributes(dg.Resolvable):
    """The fields of an `OperatorPipelineComponent`; those of Python are what they become.

    What `build_definitions` takes of the pipeline as a whole has the same name here.
    """

    source: Annotated[
        "Source | SourceFunction",
        dg.Resolver(
            resolve_source,
            model_field_type=str | SourceModel,
            description="Where the records come from: a jsonl file, its path taken from the "
            "folder of the defs.yaml, a URL, or `asset: <key>`, or `function: <name>`.",
            examples=["documents.jsonl", {"asset": "raw/documents"}],
            inject_before_resolve=False,
        ),
    ]
    operators: Annotated[
        Sequence[OperatorDeclaration],
        dg.Resolver(
            resolve_nodes,
            model_field_type=list[OperatorNodeModel],
            description="The operators, each of which takes what the one before it made.",
        ),
    ]
    name: Annotated[
        str | None,
        dg.Resolver.default(
            description="Names the asset group and the first part of every key. By default the "
            "name of the folder."
        ),
    ] = None
    modules: Annotated[
        Sequence[str],
        dg.Resolver.default(
            description="What registers the operators: Python files, their paths taken from the "
            "folder of the defs.yaml, or modules.",
            examples=[["operators.py"], ["my_project.operators"]],
        ),
    ] = field(default_factory=list)
    schedule: Annotated[
        str | None,
        dg.Resolver.default(
            description="A cron line to materialize everything by.", examples=["0 2 * * *"]
        ),
    ] = None
    retry_policy: Annotated[
        dg.RetryPolicy | None,
        dg.Resolver(
            resolve_retry_policy,
            model_field_type=RetryPolicyModel | None,
            description="Of every operator's step; a retry goes on where the attempt stopped.",
        ),
    ] = None
    resource: Annotated[
        "DataOpsResource | None",  # in quotes: Dagster would look into its fields
        dg.Resolver(
            resolve_resource,
            model_field_type=ResourceModel | None,
            description="Root folder of the results, taken from the folder of the project, and "
            "defaults; the same in all pipelines of a project.",
        ),
    ] = None
    partitions_def: Annotated[
        dg.PartitionsDefinition | None,
        dg.Resolver(
            resolve_partitions,
            model_field_type=PartitionsModel | None,
            description="Of every operator that is not `unpartitioned`.",
        ),
    ] = None
    allow_missing_partitions: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether unpartitioned operators do without partitions that are not there."
        ),
    ] = False
    new_files: Annotated[
        NewFiles | None,
        dg.Resolver(
            resolve_new_files,
            model_field_type=NewFilesModel | None,
            description="Adds a sensor that makes a dynamic partition of each new file of the "
            "source.",
        ),
    ] = None
    automation_condition: Annotated[
        "dg.AutomationCondition[dg.AssetKey] | None",
        dg.Resolver.default(
            model_field_type=str | None,
            description="When assets are materialized by themselves.",
            examples=["{{ dg.AutomationCondition.eager() }}"],
        ),
    ] = None
    freshness_policy: Annotated[
        dg.FreshnessPolicy | None,
        dg.Resolver.default(
            model_field_type=str | None, description="Of every asset, by a template."
        ),
    ] = None
    max_error_rate: Annotated[
        "YamlErrorRate",
        dg.Resolver(
            resolve_error_rate,
            model_field_type=ErrorRateField,
            description="Share of an operator's records that may fail before its check does, or "
            "`{max_error_rate, severity, blocking}`, or `unchecked` for no such check; that of a "
            "single operator stands with it. If more than half of the records failed, it holds up "
            "what is downstream unless `severity` is given.",
        ),
    ] = None
    source_checks: Annotated[
        "YamlChecks",
        dg.Resolver(
            resolve_checks,
            model_field_type=list[CheckModel],
            description="Of the source, if it is a file or a function; those of an operator's "
            "result stand with it.",
            examples=[[{"required_columns": ["text"], "blocking": True}]],
        ),
    ] = field(default_factory=list)
    stream_name: Annotated[
        str | None,
        dg.Resolver.default(
            description="What a source that is a stream is called: a URL, a compressed file, a "
            "function that returns one."
        ),
    ] = None
    layout: Annotated[
        str | None,
        dg.Resolver.default(
            description="`steps`, one an operator, or `single_step` for all of them."
        ),
    ] = None
    executor: Annotated[
        str | None,
        dg.Resolver.default(
            description="`in_process`, one step after the other, or `multiprocess`."
        ),
    ] = None
    op: Annotated[
        PipelineOp | None,
        dg.Resolver(
            resolve_op,
            model_field_type=OpModel | None,
            description="How the steps of all operators are run.",
        ),
    ] = None
    translation: (
        Annotated[
            TranslationFn[DataOpsTranslatorData],
            TranslationFnResolver[DataOpsTranslatorData](_names_in_translation),
        ]
        | None
    ) = None

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `build_definitions` that something is given for."""
        op = self.op or PipelineOp()
        pools = {node.name: node.pool or op.pool for node in self.operators}
        given = {
            "resource": self.resource,
            "schedule": self.schedule,
            "retry_policy": self.retry_policy,
            "partitions_def": self.partitions_def,
            "unpartitioned": [node.name for node in self.operators if node.unpartitioned],
            "allow_missing_partitions": self.allow_missing_partitions or None,
            "backfill_policy": op.backfill_policy,
            "new_files": self.new_files,
            "automation_condition": self.automation_condition,
            "freshness_policy": self.freshness_policy,
            "checks": self._checks(),
            "stream_name": self.stream_name,
            "layout": self.layout,
            "executor": self.executor,
            "pools": {name: pool for name, pool in pools.items() if pool is not None},
        }
        said = {name: value for name, value in given.items() if value not in (None, [], {})}
        return said | self._error_rates()

    def _checks(self) -> dict[str, Sequence[DeclaredCheck]]:
        """Return the checks of whoever has some."""
        found = {SOURCE: constructed(self.source_checks, SOURCE)}
        found |= {node.name: constructed(node.checks, node.subject) for node in self.operators}
        return {name: checks for name, checks in found.items() if checks}

    def _error_rates(self) -> dict[str, ErrorRates]:
        """Return one rate for all, or one for each node that has any; nothing without any."""
        nodes = [node for node in self.operators if node.max_error_rate is not None]
        own = {node.name: rate_of(node.max_error_rate, node.subject) for node in nodes}
        if self.max_error_rate is None:
            return {"max_error_rate": own} if own else {}
        common = rate_of(self.max_error_rate, "max_error_rate")
        by_node = dict.fromkeys([node.name for node in self.operators], common) | own
        return {"max_error_rate": by_node if own else common}
