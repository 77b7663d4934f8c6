"""OperatorPipelineComponent: a pipeline of operators that a defs.yaml declares.

Every ``dg`` command imports this module.
"""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Self

import dagster as dg
from pydantic import BaseModel

from dagster_dataops.assets.components.attributes import PipelineAttributes
from dagster_dataops.assets.components.operator_declaration import assembled
from dagster_dataops.assets.components.pipeline_fields import SourceFunction, strict_model
from dagster_dataops.assets.components.scaffolder import OperatorPipelineScaffolder, name_of
from dagster_dataops.assets.components.source_position import NOWHERE, YamlPlace
from dagster_dataops.assets.definitions import build_definitions
from dagster_dataops.assets.planning.translator import DataOpsTranslator, DataOpsTranslatorData
from dagster_dataops.errors import ConfigurationError, DefinitionError, MissingExtraError
from dagster_dataops.foundation.override import override
from dagster_dataops.pipelines.graph.operator_node import SOURCE


@dg.scaffold_with(OperatorPipelineScaffolder)
@dataclass(kw_only=True)
class OperatorPipelineComponent(PipelineAttributes, DataOpsTranslator, dg.Component):
    """A pipeline of data operators. Each operator is an asset whose result is a jsonl file.

    The definitions equal those of `build_definitions` for the same pipeline in Python.
    Override methods in a subclass, whose name is then the `type`: `get_asset_spec` changes keys
    and groups beyond the options of `translation`, `get_asset_check_spec` checks, and `execute`
    runs a step.

    Example:
        .. code-block:: python

            @dataclass(kw_only=True)
            class AnnouncedPipeline(OperatorPipelineComponent):
                channel: str = "#data"

                def get_asset_check_spec(self, data):
                    spec = super().get_asset_check_spec(data)
                    return spec.with_metadata({**spec.metadata, "channel": self.channel})

                def execute(self, context, dataops):
                    try:
                        yield from super().execute(context, dataops)
                    except Exception as error:
                        context.log.error(f"tell {self.channel}: {error}")
                        raise

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
        """Return the definitions of the pipeline, as `build_definitions` returns them.

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
            options["dagster_dataops_translator"] = self
            return build_definitions(ppl, source=source, **options)
        except ConfigurationError as error:
            raise self._place_of(error.setting).error(error.setting, error) from None
        except MissingExtraError as error:
            field = "resource" if "root" in error.feature else "source"
            raise self._place.at(field).error(field, error) from None
        except DefinitionError as error:
            raise self._blamed(name, error) from None

    def _place_of(self, setting: str) -> YamlPlace:
        """Return the position of an option, such as ``schedule.timezone`` or ``op_tags.embed``."""
        option, _, part = setting.partition(".")
        name, _, inner = part.partition(".")
        for node in self.operators:
            value = getattr(node, option, None) if node.name == name else None
            if value and (not inner or inner in value):  # a field of the operator
                return node.place.at(option)
        return self._place.at(option, *filter(None, [name]))

    def _blamed(self, name: str, error: DefinitionError) -> Exception:
        """Return an error of the pipeline with the position of the checks that it names."""
        for node in self.operators:
            if f"{node.subject} " in str(error) and node.checks:
                return node.place.at("checks").error(node.subject, error)
        for option in ("op_tags", "columns"):
            if option in str(error) and getattr(self, option, None):
                return self._place.at(option).error(option, error)
        if SOURCE in str(error) and self.source_checks:
            return self._place.at("source_checks").error(SOURCE, error)
        return self._place.error(f"pipeline {name!r}", error)

    @override
    def get_asset_spec(self, data: DataOpsTranslatorData) -> dg.AssetSpec:
        """Return the asset spec of one operator: the default, changed by ``translation``."""
        spec = super().get_asset_spec(data)
        return self.translation(spec, data) if self.translation else spec


def import_modules(
    context: dg.ComponentLoadContext, names: Sequence[str], place: YamlPlace
) -> list[ModuleType]:
    """Import modules, or Python files with paths relative to the folder of the component.

    Raises:
        DefsYamlError: A module cannot be imported.
    """
    return [_imported(context, name, place.at(number)) for number, name in enumerate(names)]


def _imported(context: dg.ComponentLoadContext, name: str, place: YamlPlace) -> ModuleType:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        return context.load_defs_relative_python_module(_file(context, name))
    except ConfigurationError as error:
        raise place.error(f"module {name!r}", error) from None
    except Exception as error:
        raise place.error(f"module {name!r}", error) from error


def _file(context: dg.ComponentLoadContext, name: str) -> Path:
    """Return the file; it must be in the package of definitions, where workers import it."""
    folder = context.path if context.path.is_dir() else context.path.parent
    file = Path(os.path.normpath(folder / name))
    if not file.is_file():
        raise ConfigurationError("modules", name, f"a Python file or a module; {file} is missing")
    if not file.is_relative_to(context.defs_module_path):
        inside = f"a file below {context.defs_module_path}, or the name of a module"
        raise ConfigurationError("modules", name, inside)
    return file
