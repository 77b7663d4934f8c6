"""OperatorDeclaration: an operator declared in a defs.yaml, and the pipeline of several."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import dagster as dg
from pydantic import Field, WithJsonSchema, create_model

from dagster_dataops.assets.components.check_fields import (
    UNCHECKED,
    CheckModel,
    ErrorRateField,
    YamlChecks,
    YamlErrorRate,
    resolve_checks,
    resolve_error_rate,
)
from dagster_dataops.assets.components.source_position import (
    NOWHERE,
    TEMPLATE,
    YamlPlace,
    in_project,
    or_template,
    rendered,
)
from dagster_dataops.data import data_register
from dagster_dataops.errors import (
    DefinitionError,
    DefsYamlError,
    OperatorOptionError,
    PipelineDefinitionError,
    UnknownOperatorError,
)
from dagster_dataops.operators.concurrency_modes import MODES
from dagster_dataops.operators.operator import (
    Operator,
    setting_without_underscore,
    unknown_operator,
)
from dagster_dataops.operators.secret_options import without_secrets
from dagster_dataops.operators.settings import (
    EXCEPTIONS,
    MODE,
    Setting,
    execution_settings,
)
from dagster_dataops.pipelines.pipeline import Pipeline

_OWN: Final = " Operators of your own are known once `modules` names the file that registers them."
_MODE: Final = WithJsonSchema({"type": "string", "pattern": f"^({'|'.join(MODES)})$|{TEMPLATE}"})
_NAMES: Final = WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1})


class _OperatorModel(dg.Model):
    """One operator of the pipeline."""

    name: str = Field(
        description="Names the asset and its folder; unique in the pipeline.", examples=["unique"]
    )
    operator: str = Field(
        description="Group and name of a registered operator.",
        examples=["dedup.Exact", "text.Normalize"],
        pattern=rf"^(data\.)?\w+\.\w+$|{TEMPLATE}",
    )
    options: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] = Field(
        default={},
        description="Options of the operator, by name.",
        examples=[{"input_key": "text"}],
    )
    inputs: Annotated[list[str] | None, _NAMES] = Field(
        default=None,
        description="Input nodes in order, such as `clean`, or `split.train` for one result of an "
        "operator with several; `source` is the input of the pipeline. By default the node before "
        "it.",
    )
    output: str | None = Field(
        default=None,
        description="Export of the result: a file if it ends in `.jsonl`, else a folder; its path "
        "is relative to the folder of the project.",
        examples=["exports"],
    )
    pool: str | None = Field(default=None, description="Concurrency pool of its step.")
    max_error_rate: ErrorRateField = Field(
        default=None,
        description="Share of its records that may fail before its check fails, also with "
        f"`severity` and `blocking`; `{UNCHECKED}` for no such check.",
        examples=[0.01, {"max_error_rate": 0.05, "blocking": True}],
    )
    checks: list[CheckModel] = Field(
        default=[],
        description="Checks of its result, after its step; of each result if it has several.",
        examples=[[{"row_count": {"min": 1}}, {"no_nulls": ["text"]}]],
    )
    unpartitioned: Annotated[bool | str, or_template("boolean")] = Field(
        default=False, description="Whether it takes all partitions at once, in their order."
    )


def _setting_field(setting: Setting) -> Any:
    """Return type and field of a setting; a template may stand in place of a value."""
    field = Field(default=None, description=setting.description)
    if setting.kind is MODE:
        return Annotated[str | None, _MODE], field
    if setting.kind is EXCEPTIONS:
        return Annotated[list[str] | None, _NAMES], field
    annotation, limits = _NUMBERS[setting.kind.json_type]
    return Annotated[annotation | None, or_template(setting.kind.json_type, **limits)], field


_NUMBERS: Final[Mapping[str, tuple[Any, Mapping[str, Any]]]] = {
    "boolean": (bool | str, {}),
    "integer": (int | str, {"minimum": 0}),
    "number": (float | str, {"minimum": 0}),
}
_SETTINGS: Final = {name: one for name, one in execution_settings().items() if one.yaml}
_RESOLVED: Final = {"checks", "max_error_rate"}  # by themselves
OperatorNodeModel: Final[Any] = create_model(
    "OperatorNodeModel",
    __base__=_OperatorModel,
    __doc__=_OperatorModel.__doc__,
    **{name: _setting_field(setting) for name, setting in _SETTINGS.items()},
)


@dataclass(frozen=True, kw_only=True)
class OperatorDeclaration:
    """One operator of a pipeline, by its registered name.

    Attributes:
        name: Unique in the pipeline; names its folder and its asset.
        operator: Group and name, such as ``dedup.Exact``.
        options: Options of the operator, by name.
        settings: Execution settings such as ``max_workers``, by name.
        inputs: Names of its input nodes; None for the node before it.
        output: File or folder that its result is exported to.
        pool: Concurrency pool of its step.
        max_error_rate: Share of its records that may fail before its check fails, or that check.
        checks: Checks of its result.
        unpartitioned: Whether it takes all partitions at once.
        place: Position of the declaration.
    """

    name: str
    operator: str
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] | None = None
    output: str | os.PathLike[str] | None = None
    pool: str | None = None
    max_error_rate: YamlErrorRate = None
    checks: YamlChecks = ()
    unpartitioned: bool = False
    place: YamlPlace = NOWHERE

    @property
    def subject(self) -> str:
        """Name of the operator in errors."""
        return f"node {self.name!r}"

    def construct(self) -> Operator:
        """Return the operator, configured.

        Raises:
            DefinitionError: It is not registered, or does not take these options.
        """
        try:
            operator: Operator = self._registered()(
                **self.options, **{f"_{name}": value for name, value in self.settings.items()}
            )
        except OperatorOptionError as error:
            said = self._said_of_settings(error)
            raise self._refused(self._option_place(error.option), said) from None
        except DefinitionError as error:
            raise self._refused(self.place.at("operator"), error) from None
        except Exception as error:
            raise self._refused(self.place.at("options"), error) from error
        return operator if self.output is None else operator.set_output(self.output)

    def _refused(self, place: YamlPlace, error: Exception) -> Exception:
        """Return the error for this operator; the excerpt of the file hides its secrets."""
        found = place.error(self.subject, error)
        if not isinstance(found, DefsYamlError):
            return found
        return DefsYamlError(*(without_secrets(str(text), self.options) for text in found.args))

    def _registered(self) -> Any:
        group, _, name = self.operator.removeprefix("data.").partition(".")
        known = {
            f"{known}.{operator}": data_register.operator(known, operator)
            for known in data_register.groups()
            for operator in data_register.operators(known)
        }
        found = known.get(f"{group}.{name}")
        if found is None:
            unknown = unknown_operator(self.operator, list(known))
            own = "" if group in data_register.groups() else _OWN
            raise UnknownOperatorError(unknown.wanted, f"{unknown.known}{own}")
        return found

    def _said_of_settings(self, error: OperatorOptionError) -> OperatorOptionError:
        """Return the error in terms of YAML, where settings are written beside ``options``."""
        setting = (setting_without_underscore(error.option) or "").removeprefix("_")
        if error.option not in self.options or setting not in _SETTINGS:
            return error
        reason = f"is no option; write the execution setting {setting!r} beside `options`"
        return OperatorOptionError(error.operator, error.option, reason)

    def _option_place(self, option: str) -> YamlPlace:
        setting = option.removeprefix("_")
        return self.place.at(*([setting] if option != setting else ["options", option]))


def resolve_nodes(
    context: dg.ResolutionContext, models: Sequence[_OperatorModel]
) -> Sequence[OperatorDeclaration]:
    """Return the declarations of ``operators`` in a defs.yaml, with templates filled in."""
    return [_declared(context.at_path(place), model) for place, model in enumerate(models)]


def _declared(context: dg.ResolutionContext, model: _OperatorModel) -> OperatorDeclaration:
    given = {
        name: rendered(context.at_path(name), value)
        for name, value in model.model_dump(exclude_none=True, exclude=_RESOLVED).items()
    }
    settings = {name: given.pop(name) for name in sorted(_SETTINGS.keys() & given.keys())}
    if "output" in given:
        given["output"] = in_project(context, given["output"])
    return OperatorDeclaration(
        **given,
        settings=settings,
        max_error_rate=resolve_error_rate(context.at_path("max_error_rate"), model.max_error_rate),
        checks=resolve_checks(context.at_path("checks"), model.checks),
        place=YamlPlace(context),
    )


def assembled(name: str, nodes: Sequence[OperatorDeclaration], place: YamlPlace) -> Pipeline:
    """Return the pipeline of ``nodes``.

    Args:
        name: Name of the pipeline.
        nodes: Declarations in order.
        place: Position of the pipeline, for errors of no node in particular.

    Raises:
        DefinitionError: The nodes make no pipeline; a `DefsYamlError` if the line is known.
    """
    try:
        with Pipeline(name) as ppl:
            for node in nodes:
                _add(ppl, node)
    except PipelineDefinitionError as error:
        blamed = next((node for node in nodes if f"{node.subject} " in error.reason), None)
        if blamed is None:
            raise place.error(f"pipeline {name!r}", error) from None
        raise blamed.place.at("inputs").error(blamed.subject, error) from None
    return ppl


def _add(ppl: Pipeline, node: OperatorDeclaration) -> None:
    operator = node.construct()
    try:
        ppl.add(node.name, operator, inputs=node.inputs)
    except PipelineDefinitionError as error:
        raise node.place.at("name").error(node.subject, error) from None
