"""OperatorDeclaration: an operator declared in a defs.yaml. assembled: the pipeline of several."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Self

import dagster as dg
from pydantic import Field, WithJsonSchema, create_model, model_validator

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
    DefsYamlFaultsError,
    OperatorOptionError,
    PipelineDefinitionError,
    UnknownOperatorError,
)
from dagster_dataops.operators.definition.operator import (
    Operator,
    setting_without_underscore,
    unknown_operator,
)
from dagster_dataops.operators.options.artefact_options import ArtefactReference
from dagster_dataops.operators.options.concurrency_modes import MODE_NAME, MODES
from dagster_dataops.operators.options.file_content import marked_paths
from dagster_dataops.operators.options.renamed_options import by_present_names
from dagster_dataops.operators.options.settings import (
    AGENTS,
    EXCEPTIONS,
    MISSING,
    MISSING_RULES,
    MODE,
    REMOVED_SETTINGS,
    Setting,
    execution_settings,
)
from dagster_dataops.operators.secrets.secret_options import without_secrets
from dagster_dataops.pipelines.chaining import chain
from dagster_dataops.pipelines.pipeline import Pipeline

_OWN: Final = " To use your own operators, name the file that registers them in `modules`."
# Modules that the file names may register further modes; they are checked when these are loaded.
_MODE: Final = WithJsonSchema(
    {"type": "string", "pattern": rf"^{MODE_NAME}$|{TEMPLATE}", "examples": list(MODES)}
)
_MISSING: Final = WithJsonSchema(
    {"type": "string", "pattern": f"^({'|'.join(MISSING_RULES)})$|{TEMPLATE}"}
)
_AGENTS: Final = WithJsonSchema(
    {"anyOf": [{"type": "object"}, {"const": False}, {"type": "string", "pattern": TEMPLATE}]}
)
_NAMES: Final = WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1})


_NAME: Final = rf"^(data\.)?\w+\.\w+$|{TEMPLATE}"


class _PartModel(dg.Model):
    """One operator of a chain."""

    operator: str = Field(
        description="Group and name of a registered record operator.",
        examples=["text.Normalize"],
        pattern=_NAME,
    )
    options: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] = Field(
        default={},
        description="Options of the operator, by name.",
        examples=[{"input_key": "text"}],
    )


class _OperatorModel(dg.Model):
    """One operator of the pipeline."""

    name: str = Field(
        description="Name of the asset and its folder; unique in the pipeline.", examples=["unique"]
    )
    operator: str | None = Field(
        default=None,
        description="Group and name of a registered operator.",
        examples=["dedup.Exact", "text.Normalize"],
        pattern=_NAME,
    )
    chain: list[_PartModel] | None = Field(
        default=None,
        min_length=1,
        description="Record operators that make one operator, in place of `operator`: each takes "
        "the records of the one before it, and only the last writes a result.",
        examples=[[{"operator": "text.Normalize"}, {"operator": "text.LengthFilter"}]],
    )
    options: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] = Field(
        default={},
        description="Options of the operator, by name. `{artefact: <node>}` is the folder of a "
        "node that builds an artefact.",
        examples=[{"input_key": "text"}, {"index": {"artefact": "index"}}],
    )
    inputs: Annotated[list[str] | None, _NAMES] = Field(
        default=None,
        description="Input nodes in order, such as `clean`, or `split.train` for one result of an "
        "operator with several; `source` is the input of the pipeline. By default the node before "
        "it, artefacts and exports apart.",
    )
    output: str | None = Field(
        default=None,
        description="Path to export the result to: a file if it ends in `.jsonl`, `.jsonl.gz`, "
        "`.jsonl.zst`, `.parquet`, `.csv`, `.tsv` or an ending that an installed package adds, "
        "else a folder of jsonl files; relative to the folder of the project.",
        examples=["exports"],
    )
    pool: str | None = Field(default=None, description="Concurrency pool of its step.")
    op_tags: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] = Field(
        default={},
        description="Tags of its step, which executors and launchers read: resources of a pod, "
        "the queue of Celery, priorities.",
        examples=[{"dagster-celery/queue": "gpu"}],
    )
    columns: dict[str, str] = Field(
        default={},
        description="What columns of its result are, by name, for the column schema on its page.",
        examples=[{"score": "Between 0 and 1; higher is better."}],
    )
    max_error_rate: ErrorRateField = Field(
        default=None,
        description="Share of its records that may fail before its check fails, or an object "
        f"that also has `severity` and `blocking`; `{UNCHECKED}` for no check.",
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

    @model_validator(mode="before")
    @classmethod
    def _has_no_removed_setting(cls, fields: Any) -> Any:
        for name, reason in REMOVED_SETTINGS.items():
            if isinstance(fields, Mapping) and name.removeprefix("_") in fields:
                raise ValueError(f"`{name.removeprefix('_')}` {reason}")
        return fields

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.operator is None) == (self.chain is None):
            msg = "a node has `operator`, or `chain` with several operators: exactly one of both"
            raise ValueError(msg)
        if self.chain is not None and self.options:
            msg = "`options` belong to the operators of `chain`: write them there"
            raise ValueError(msg)
        return self


def _setting_field(setting: Setting) -> Any:
    """Return type and field of a setting; a template may replace the value."""
    field = Field(default=None, description=setting.description)
    if setting.kind is MODE:
        return Annotated[str | None, _MODE], field
    if setting.kind is MISSING:
        return Annotated[str | None, _MISSING], field
    if setting.kind is EXCEPTIONS:
        return Annotated[list[str] | None, _NAMES], field
    if setting.kind is AGENTS:
        return Annotated[dict[str, Any] | bool | str | None, _AGENTS], field
    annotation, limits = _NUMBERS[setting.kind.json_type]
    return Annotated[annotation | None, or_template(setting.kind.json_type, **limits)], field


_NUMBERS: Final[Mapping[str, tuple[Any, Mapping[str, Any]]]] = {
    "boolean": (bool | str, {}),
    "integer": (int | str, {"minimum": 0}),
    "number": (float | str, {"minimum": 0}),
}
_SETTINGS: Final = {name: setting for name, setting in execution_settings().items() if setting.yaml}
_RESOLVED: Final = {"checks", "max_error_rate"}  # resolved separately
_ARTEFACT: Final = "artefact"  # the only key of an option that names a node
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
        operator: Group and name, such as ``dedup.Exact``; empty for a chain.
        chain: Group and name, and options, of every part of a chain, as ``operator`` and
            ``options``.
        options: Options of the operator, by name. ``{"artefact": "index"}`` is the folder that node
            ``index`` builds.
        settings: Execution settings such as ``max_workers``, by name.
        inputs: Names of its input nodes; None for the node before it.
        output: File or folder that its result is exported to.
        pool: Concurrency pool of its step.
        op_tags: Tags of its step.
        columns: What columns of its result are, by name.
        max_error_rate: Share of its records that may fail before its check fails, or that check.
        checks: Checks of its result.
        unpartitioned: Whether it takes all partitions at once.
        place: Position of the declaration.
    """

    name: str
    operator: str = ""
    chain: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] | None = None
    output: str | os.PathLike[str] | None = None
    pool: str | None = None
    op_tags: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    max_error_rate: YamlErrorRate = None
    checks: YamlChecks = ()
    unpartitioned: bool = False
    place: YamlPlace = NOWHERE

    @property
    def subject(self) -> str:
        """Name of the operator in errors."""
        return f"node {self.name!r}"

    def construct(self) -> Operator:
        """Return the operator with its options and settings.

        Raises:
            DefinitionError: The operator is not registered, or does not take these options.
        """
        settings = {f"_{name}": value for name, value in self.settings.items()}
        if self.chain:
            operator = self._chain(settings)
        else:
            operator = self._constructed(self.place, self.operator, self.options, settings)
        return operator if self.output is None else operator.set_output(self.output)

    def _chain(self, settings: Mapping[str, Any]) -> Operator:
        parts = [
            self._constructed(
                self.place.at("chain", number), part["operator"], part.get("options", {}), {}
            )
            for number, part in enumerate(self.chain)
        ]
        try:
            return chain(*parts, name=self.name, **settings)
        except OperatorOptionError as error:
            raise self._refused(_option_place(self.place, error.option, "chain"), error) from None
        except DefinitionError as error:
            raise self._refused(self.place.at("chain"), error) from None

    def _constructed(
        self,
        place: YamlPlace,
        name: str,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> Operator:
        try:
            written_options = {option: _option(value) for option, value in options.items()}
            operator: Operator = _registered(name)(
                **self._present(place, name, written_options), **settings
            )
        except OperatorOptionError as error:
            said = _said_of_settings(error, options)
            raise self._refused(_option_place(place, error.option), said) from None
        except DefinitionError as error:
            raise self._refused(place.at("operator"), error) from None
        except Exception as error:
            raise self._refused(place.at("options"), error) from error
        return operator

    def _present(self, place: YamlPlace, name: str, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return options by their present names, and paths of files; warn of each former name."""
        spec = _registered(name).__dataops_spec__
        options = by_present_names(
            spec.qualified_name,
            spec.options,
            written,
            shipped=spec.shipped,
            place=lambda option: place.at("options", option).text,
        )
        for option in spec.options:
            if option.name in options:
                value = options[option.name]
                paths = map(str, marked_paths(option.annotation, value))
                beside = {path: place.beside(path) for path in paths}
                options[option.name] = _replaced(value, beside)
        return options

    def _refused(self, place: YamlPlace, error: Exception) -> Exception:
        """Return the error for this operator; the excerpt of the file hides its secrets."""
        fault = place.error(self.subject, error)
        if not isinstance(fault, DefsYamlError):
            return fault
        options = [self.options, *(part.get("options", {}) for part in self.chain)]
        texts = list(map(str, fault.args))
        for hidden in options:
            texts = [without_secrets(text, hidden) for text in texts]
        return DefsYamlError(*texts)


def _registered(name: str) -> Any:
    """Return the operator class of a group and name."""
    group, _, operator = name.removeprefix("data.").partition(".")
    if operator in data_register.operators(group):
        return data_register.operator(group, operator)
    groups = data_register.groups()
    known = [f"{each}.{operator}" for each in groups for operator in data_register.operators(each)]
    same_group = [each for each in known if each.startswith(f"{group}.")]
    unknown = unknown_operator(name, known, same_group or [f"{each}.*" for each in groups])
    hint = "" if group in groups else _OWN
    raise UnknownOperatorError(unknown.wanted, f"{unknown.known}{hint}")


def _said_of_settings(
    error: OperatorOptionError, options: Mapping[str, Any]
) -> OperatorOptionError:
    """Return the error in terms of YAML, where settings are written beside ``options``."""
    setting = (setting_without_underscore(error.option) or "").removeprefix("_")
    if error.option not in options or setting not in _SETTINGS:
        return error
    reason = f"is not an option; write the execution setting {setting!r} beside `options`"
    return OperatorOptionError(error.operator, error.option, reason)


def _option_place(place: YamlPlace, option: str, options: str = "options") -> YamlPlace:
    """Return the position of an option or setting; settings are beside ``options``."""
    setting = option.removeprefix("_")
    return place.at(*([setting] if option != setting else [options, option]))


def _option(value: Any) -> Any:
    """Return the value of an option, with references to artefacts in place of their mappings."""
    if isinstance(value, Mapping):
        named = value.get(_ARTEFACT)
        if len(value) == 1 and isinstance(named, str):
            return ArtefactReference(named)
        return {name: _option(item) for name, item in value.items()}
    return [_option(item) for item in value] if isinstance(value, list) else value


def _replaced(value: Any, paths: Mapping[str, str]) -> Any:
    """Return the value of an option with other paths in place of some."""
    if isinstance(value, Mapping):
        return {name: _replaced(item, paths) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, paths) for item in value]
    return paths.get(value, value) if isinstance(value, str) else value


def resolve_nodes(
    context: dg.ResolutionContext, models: Sequence[_OperatorModel]
) -> Sequence[OperatorDeclaration]:
    """Return the declarations of ``operators`` in a defs.yaml, with templates filled in."""
    return [_declared(context.at_path(place), model) for place, model in enumerate(models)]


def _declared(context: dg.ResolutionContext, model: _OperatorModel) -> OperatorDeclaration:
    fields = {
        name: rendered(context.at_path(name), value)
        for name, value in model.model_dump(exclude_none=True, exclude=_RESOLVED).items()
    }
    settings = {name: fields.pop(name) for name in sorted(_SETTINGS.keys() & fields.keys())}
    if "output" in fields:
        fields["output"] = in_project(context, fields["output"])
    return OperatorDeclaration(
        **fields,
        settings=settings,
        max_error_rate=resolve_error_rate(context.at_path("max_error_rate"), model.max_error_rate),
        checks=resolve_checks(context.at_path("checks"), model.checks),
        place=YamlPlace(context),
    )


def assembled(name: str, nodes: Sequence[OperatorDeclaration], place: YamlPlace) -> Pipeline:
    """Return the pipeline of ``nodes``.

    Raises:
        DefinitionError: The nodes are not a valid pipeline; a `DefsYamlError` if the line is known.
    """
    operators = _constructed(nodes)
    try:
        with Pipeline(name) as ppl:
            for node, operator in zip(nodes, operators, strict=True):
                _add(ppl, node, operator)
    except PipelineDefinitionError as error:
        blamed = next((node for node in nodes if f"{node.subject} " in error.reason), None)
        if blamed is None:
            raise place.error(f"pipeline {name!r}", error) from None
        option = next((name for name in blamed.options if f"option {name!r}" in error.reason), None)
        place = blamed.place.at("inputs") if option is None else blamed.place.at("options", option)
        raise place.error(blamed.subject, error) from None
    return ppl


def _constructed(nodes: Sequence[OperatorDeclaration]) -> list[Operator]:
    """Construct all operators; several errors are raised as one."""
    operators, errors = [], []
    for node in nodes:
        try:
            operators.append(node.construct())
        except DefsYamlError as error:
            errors.append(error)
    if len(errors) > 1:
        raise DefsYamlFaultsError(len(errors), "\n\n".join(map(str, errors)))
    if errors:
        raise errors[0]
    return operators


def _add(ppl: Pipeline, node: OperatorDeclaration, operator: Operator) -> None:
    try:
        ppl.add(node.name, operator, inputs=node.inputs)
    except PipelineDefinitionError as error:
        raise node.place.at("name").error(node.subject, error) from None
