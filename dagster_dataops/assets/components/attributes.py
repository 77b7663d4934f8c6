"""PipelineAttributes: the fields of a pipeline in a defs.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import dagster as dg
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver

from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import ErrorRates
from dagster_dataops.assets.components.check_fields import (
    CheckDeclaration,
    CheckModel,
    YamlChecks,
    constructed,
    resolve_checks,
)
from dagster_dataops.assets.components.operator_declaration import (
    OperatorDeclaration,
    OperatorNodeModel,
    resolve_nodes,
)
from dagster_dataops.assets.components.pipeline_fields import (
    YAML_FIELDS,
    SourceFunction,
    SourceModel,
    resolve_source,
    with_option_fields,
)
from dagster_dataops.assets.planning.translator import DataOpsTranslatorData
from dagster_dataops.assets.steps.source_assets import Source  # noqa: TC001 - Dagster reads it
from dagster_dataops.pipelines.graph.operator_node import SOURCE

if TYPE_CHECKING:
    from dagster_dataops.assets.definitions import PipelineOptions


def _names_in_translation(data: DataOpsTranslatorData) -> dict[str, Any]:
    spec = data.node.operator.__dataops__.spec
    return {"node": data.node, "operator": spec, "pipeline": data.pipeline}


@dataclass(kw_only=True)
@with_option_fields
class PipelineAttributes(dg.Resolvable):
    """The fields of an `OperatorPipelineComponent`.

    The fields below exist only in the component. The fields of `PipelineOptions` are added to them.
    Options by node are fields of the operators instead.
    """

    source: Annotated[
        "Source | SourceFunction",
        dg.Resolver(
            resolve_source,
            model_field_type=str | SourceModel,
            description="Origin of the records: the path of a jsonl file, relative to the folder "
            "of the defs.yaml; a URL; `asset: <key>`; or `function: <name>`.",
            examples=["documents.jsonl", {"asset": "raw/documents"}],
            inject_before_resolve=False,
        ),
    ]
    operators: Annotated[
        Sequence[OperatorDeclaration],
        dg.Resolver(
            resolve_nodes,
            model_field_type=list[OperatorNodeModel],
            description="The operators; each takes the result of the one before it, unless it "
            "has `inputs`.",
        ),
    ]
    name: Annotated[
        str | None,
        dg.Resolver.default(
            description="Name of the pipeline: the asset group and the first part of every key. "
            "By default the name of the folder."
        ),
    ] = None
    modules: Annotated[
        Sequence[str],
        dg.Resolver.default(
            description="Files or modules that register the operators. Paths of Python files are "
            "relative to the folder of the defs.yaml.",
            examples=[["operators.py"], ["my_project.operators"]],
        ),
    ] = field(default_factory=list)
    source_checks: Annotated[
        "YamlChecks",
        dg.Resolver(
            resolve_checks,
            model_field_type=list[CheckModel],
            description="Checks of the source, if it is a file or a function. Checks of a result "
            "are fields of its operator.",
            examples=[[{"required_columns": ["text"], "blocking": True}]],
        ),
    ] = field(default_factory=list)
    translation: (
        Annotated[
            TranslationFn[DataOpsTranslatorData],
            TranslationFnResolver[DataOpsTranslatorData](_names_in_translation),
        ]
        | None
    ) = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            source: Source | SourceFunction,
            operators: Sequence[OperatorDeclaration],
            name: str | None = None,
            modules: Sequence[str] = (),
            source_checks: YamlChecks = (),
            translation: TranslationFn[DataOpsTranslatorData] | None = None,
            **options: Unpack[PipelineOptions],
        ) -> None: ...

    def keywords(self) -> "PipelineOptions":
        """Return the options that the component sets, for `build_definitions`."""
        fields = {name: getattr(self, name) for name in YAML_FIELDS}
        fields |= {
            "unpartitioned": [node.name for node in self.operators if node.unpartitioned],
            "checks": self._checks(),
            "pools": self._pools(fields["pools"]),
            "op_tags": self._op_tags(fields["op_tags"] or {}),
            "columns": self._columns(fields["columns"] or {}),
        }
        rates = self._error_rates(fields.pop("max_error_rate"))  # rates of None mean: no check
        set_fields: Any = {
            name: value for name, value in fields.items() if value not in (None, [], {})
        }
        options: PipelineOptions = set_fields | rates
        return options

    def _pools(self, common: str | None) -> Mapping[str, str] | str | None:
        """Return one pool for all nodes, or a pool by node."""
        pools = {node.name: node.pool for node in self.operators if node.pool is not None}
        if not pools or common is None:
            return pools or common
        return dict.fromkeys([node.name for node in self.operators], common) | pools

    def _op_tags(self, common: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        """Return the tags by node: those of the pipeline's field, and over them the node's own."""
        by_node = {node.name: node.op_tags for node in self.operators if node.op_tags}
        return {
            **common,
            **{name: {**common.get(name, {}), **tags} for name, tags in by_node.items()},
        }

    def _columns(self, common: Mapping[str, Any]) -> dict[str, Any]:
        """Return the texts of columns: those of the pipeline's field, and the nodes' own."""
        by_node = {node.name: node.columns for node in self.operators if node.columns}
        before = {name: texts for name, texts in common.items() if isinstance(texts, Mapping)}
        return {**common, **{name: {**before.get(name, {}), **by_node[name]} for name in by_node}}

    def _checks(self) -> dict[str, list[DeclaredCheck]]:
        """Return the checks, by node, or by result for those of one output."""
        declared = [(SOURCE, SOURCE, self.source_checks)]
        declared += [(node.name, node.subject, node.checks) for node in self.operators]
        by_result: dict[str, list[DeclaredCheck]] = {}
        for name, subject, checks in declared:
            for check in checks:
                output = check.output if isinstance(check, CheckDeclaration) else ""
                result = f"{name}.{output}" if output else name
                by_result.setdefault(result, []).append(constructed(check, subject))
        return by_result

    def _error_rates(self, rates: Any) -> dict[str, ErrorRates]:
        """Return one rate for all nodes, or rates by node; empty without any."""
        nodes = [node for node in self.operators if node.max_error_rate is not None]
        by_name = {node.name: constructed(node.max_error_rate, node.subject) for node in nodes}
        if rates is None:
            return {"max_error_rate": by_name} if by_name else {}
        common = constructed(rates, "max_error_rate")
        by_node = dict.fromkeys([node.name for node in self.operators], common) | by_name
        return {"max_error_rate": by_node if by_name else common}
