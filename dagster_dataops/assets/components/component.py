"""OperatorPipelineComponent: a pipeline of operators as a defs.yaml declares it.

Every ``dg`` command imports this module.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import dagster as dg
from pydantic import BaseModel
from typing_extensions import override

from dagster_dataops.assets.components.attributes import PipelineAttributes
from dagster_dataops.assets.components.operator_declaration import assembled
from dagster_dataops.assets.components.operator_modules import import_modules
from dagster_dataops.assets.components.pipeline_fields import SourceFunction, strict_model
from dagster_dataops.assets.components.scaffolder import OperatorPipelineScaffolder, name_of
from dagster_dataops.assets.components.source_position import NOWHERE, YamlPlace
from dagster_dataops.assets.definitions import build_definitions
from dagster_dataops.assets.planning.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.errors import ConfigurationError, DefinitionError
from dagster_dataops.graph.graph import SOURCE


@dg.scaffold_with(OperatorPipelineScaffolder)
@dataclass(kw_only=True)
class OperatorPipelineComponent(PipelineAttributes, dg.Component):
    """A pipeline of data operators. Each operator is an asset whose result is a jsonl file.

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
                  checks: [{row_count: {min: 1}}, {no_nulls: [text], blocking: true}]
                - name: graded
                  operator: mine.grade
                  max_workers: 32
              schedule: "0 2 * * *"
    """

    _place: ClassVar[YamlPlace] = NOWHERE

    @override
    @classmethod
    def model(cls) -> type[BaseModel]:
        """Return the model that checks a defs.yaml."""
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
        """Return the description of this type of component for the UI."""
        kinds = ("asset", "asset_check", "job", "schedule", "sensor", "resource")
        return dg.ComponentTypeSpec(produces=kinds)

    @override
    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the pipeline, as `build_definitions` makes them.

        Raises:
            DefsYamlError: An operator, an option or a module is unknown; with file and line.
        """
        modules = import_modules(context, self.modules, self._place.at("modules"))
        source = self.source
        if isinstance(source, SourceFunction):
            source = source.found_in(modules)
        name = self.name or name_of(context.path)
        ppl = assembled(name, self.operators, self._place)
        try:
            options = self.keywords()
            options["dagster_dataops_translator"] = _ComponentTranslator(self)
            return build_definitions(ppl, source=source, **options)
        except ConfigurationError as error:
            raise self._place.at(error.setting).error(error.setting, error) from None
        except DefinitionError as error:
            raise self._blamed(name, error) from None

    def _blamed(self, name: str, error: DefinitionError) -> Exception:
        """Return an error of the pipeline with the position of the checks that it names."""
        for node in self.operators:
            if f"{node.subject} " in str(error) and node.checks:
                return node.place.at("checks").error(node.subject, error)
        if SOURCE in str(error) and self.source_checks:
            return self._place.at("source_checks").error(SOURCE, error)
        return self._place.error(f"pipeline {name!r}", error)

    def get_asset_spec(self, data: DataOpsTranslatorData) -> dg.AssetSpec:
        """Return the asset spec of one operator: the default, changed by ``translation``."""
        spec = DataOpsTranslator().get_asset_spec(data)
        return self.translation(spec, data) if self.translation else spec


class _ComponentTranslator(DataOpsTranslator):
    """Calls the component's `get_asset_spec`, which subclasses override."""

    def __init__(self, component: OperatorPipelineComponent) -> None:
        self._component = component

    @override
    def get_asset_spec(self, data: DataOpsTranslatorData) -> dg.AssetSpec:
        return self._component.get_asset_spec(data)
