"""OperatorPipelineComponent: a pipeline of operators as a defs.yaml declares it.

Every ``dg`` command imports this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import dagster as dg
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel
from typing_extensions import override

from dagster_dataops.assets.definitions import build_definitions
from dagster_dataops.assets.resource import DataOpsResource  # noqa: TC001 - Dagster reads it
from dagster_dataops.assets.scaffolding import OperatorPipelineScaffolder, name_of
from dagster_dataops.assets.sources import Source  # noqa: TC001 - Dagster reads it
from dagster_dataops.assets.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.assets.yaml_fields import (
    ResourceModel,
    RetryPolicyModel,
    SourceFunction,
    SourceModel,
    resolve_resource,
    resolve_retry_policy,
    resolve_source,
    strict_model,
)
from dagster_dataops.assets.yaml_modules import import_modules
from dagster_dataops.assets.yaml_nodes import (
    OperatorDeclaration,
    OperatorNodeModel,
    assembled,
    resolve_nodes,
)
from dagster_dataops.assets.yaml_places import NOWHERE, YamlPlace


def _names_in_translation(data: DataOpsTranslatorData) -> dict[str, Any]:
    spec = data.node.operator.__dataops__.spec
    return {"node": data.node, "operator": spec, "pipeline": data.pipeline}


@dg.scaffold_with(OperatorPipelineScaffolder)
@dataclass(kw_only=True)
class OperatorPipelineComponent(dg.Component, dg.Resolvable):
    """Data operators joined in a pipeline: an asset each, one jsonl file as its result.

    The definitions are those that `build_definitions` makes of the same pipeline in Python.
    Override `get_asset_spec` to change keys and groups beyond what ``translation`` can.

    Example:
        .. code-block:: yaml

            type: dagster_dataops.OperatorPipelineComponent

            attributes:
              source: documents.jsonl
              modules: [operators.py]
              operators:
                - name: unique
                  operator: dedup.Exact
                  options: {input_key: text}
                - name: graded
                  operator: mine.grade
                  max_workers: 32
              schedule: "0 2 * * *"
    """

    _place: ClassVar[YamlPlace] = NOWHERE

    source: Annotated[
        "Source | SourceFunction",
        dg.Resolver(
            resolve_source,
            model_field_type=str | SourceModel,
            description="Where the records come from: a jsonl file, its path taken from the "
            "folder of the defs.yaml, or `asset: <key>`, or `function: <name>`.",
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
    translation: (
        Annotated[
            TranslationFn[DataOpsTranslatorData],
            TranslationFnResolver[DataOpsTranslatorData](_names_in_translation),
        ]
        | None
    ) = None

    @override
    @classmethod
    def model(cls) -> type[BaseModel]:
        """Return what a defs.yaml is checked against."""
        return strict_model(super().model())

    @override
    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> Self:
        """Return the component that a defs.yaml describes."""
        component: Self = super().resolve_from_model(context, model)
        component.__dict__["_place"] = YamlPlace(context)
        return component

    @override
    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what the UI says of this type of component."""
        return dg.ComponentTypeSpec(produces=["asset", "job", "schedule", "resource"])

    @override
    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the pipeline, as `build_definitions` makes them.

        Raises:
            DefsYamlError: An operator, an option or a module is unknown; with file and line.
        """
        modules = import_modules(context, self.modules, self._place.at("modules"))
        source = self.source
        return build_definitions(
            assembled(self.name or name_of(context.path), self.operators, self._place),
            source=source.found_in(modules) if isinstance(source, SourceFunction) else source,
            translator=_ComponentTranslator(self),
            resource=self.resource,
            schedule=self.schedule,
            retry_policy=self.retry_policy,
        )

    def get_asset_spec(self, data: DataOpsTranslatorData) -> dg.AssetSpec:
        """Return the spec of one operator: the translator's, changed by ``translation``."""
        spec = DataOpsTranslator().get_asset_spec(data)
        return self.translation(spec, data) if self.translation else spec


class _ComponentTranslator(DataOpsTranslator):
    """Asks the component, whose subclasses override the method that dbt's and dlt's do."""

    def __init__(self, component: OperatorPipelineComponent) -> None:
        self._component = component

    @override
    def get_asset_spec(self, data: DataOpsTranslatorData) -> dg.AssetSpec:
        return self._component.get_asset_spec(data)
