"""Fields of a defs.yaml for checks: declared checks, and the error rate."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias

import dagster as dg
from pydantic import ConfigDict, Field, WithJsonSchema, create_model, model_validator
from pydantic.alias_generators import to_pascal

from dagster_dataops.assets.checks.check_functions import (
    CHECK_KINDS,
    added_checks,
    check_kind_named,
)
from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import ErrorRate, ErrorRateCheck
from dagster_dataops.assets.components.source_position import (
    TEMPLATE,
    YamlPlace,
    beside,
    or_template,
    rendered,
    written,
)
from dagster_dataops.errors import DataOpsError

UNCHECKED: Final = "unchecked"
_ADDED: Final[Mapping[str, Any]] = {
    "type": ["array", "boolean", "integer", "number", "object", "string"],
    "description": "A check of an installed package.",
}
_YAML: Final[Mapping[str, Mapping[str, Any]]] = {  # those of packages are not imported for it
    **dict.fromkeys(added_checks(), _ADDED),
    **{name: kind.yaml for name, kind in CHECK_KINDS.items()},
}
_SHARE: Final[Mapping[str, Any]] = {"minimum": 0, "maximum": 1}
_SEVERITY: Final = WithJsonSchema({"type": "string", "pattern": f"^(WARN|ERROR)$|{TEMPLATE}"})
_UNSET: Any = None  # default of a field whose type has no null, which makes errors exact
_PYTHON_TYPES: Final[Mapping[str, Any]] = {
    "array": list[str],
    "boolean": bool,
    "integer": int,
    "number": float,
    "object": dict[str, Any],
    "string": str,
}
_TEMPLATED: Final = ("boolean", "integer", "number")  # a text here can only be a template


class SeverityModel(dg.Model):
    """The severity of a failed check."""

    severity: Annotated[str | None, _SEVERITY] = Field(
        default=None, description="Severity if the check fails: WARN or ERROR."
    )
    blocking: Annotated[bool | str, or_template("boolean")] = Field(
        default=False, description="Whether a failed check stops the assets downstream."
    )


class _AnyCheck(SeverityModel):
    """A check of a published result: one kind, with its severity and its name."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [kind]} for kind in _YAML]})

    name: str = Field(
        default=_UNSET, description="Unique among the checks of the asset; by default its kind."
    )
    output: str = Field(
        default=_UNSET,
        description="Of an operator with several results, the one to check; by default each.",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in _YAML) != 1:
            msg = f"a check is one of {', '.join(_YAML)}"
            raise ValueError(msg)
        return self


def _model_field(title: str, schema: Mapping[str, Any]) -> Any:
    """Return type and field for a JSON Schema; a template may replace a number or a boolean."""
    described = {key: schema[key] for key in ("description", "examples") if key in schema}
    field = Field(default=_UNSET, **described)
    if "properties" in schema:
        parts = {name: _model_field(name, part) for name, part in schema["properties"].items()}
        text = schema["description"]
        return create_model(title, __base__=dg.Model, __doc__=text, **parts), field
    kind = schema["type"]
    limits = {key: value for key, value in schema.items() if key not in {*described, "type"}}
    if isinstance(kind, str) and kind in _TEMPLATED:
        return Annotated[_PYTHON_TYPES[kind] | str | None, or_template(kind, **limits)], field
    names = [kind] if isinstance(kind, str) else kind
    kinds: Any = reduce(operator.or_, (_PYTHON_TYPES[name] for name in names))
    return Annotated[kinds | None, WithJsonSchema({"type": kind, **limits})], field


if TYPE_CHECKING:
    CheckModel: TypeAlias = _AnyCheck
else:  # with a field for every kind
    CheckModel = create_model(
        "CheckModel",
        __base__=_AnyCheck,
        __doc__=_AnyCheck.__doc__,
        **{name: _model_field(f"{to_pascal(name)}Model", schema) for name, schema in _YAML.items()},
    )


class ErrorRateModel(SeverityModel):
    """The share of records that may fail, and the severity if more do."""

    max_error_rate: Annotated[float | str, or_template("number", **_SHARE)] = Field(
        default=0.0, description="Largest share of the records that may fail."
    )


ErrorRateField: TypeAlias = Annotated[
    float | str | ErrorRateModel | None,
    WithJsonSchema(
        {
            **ErrorRateModel.model_json_schema(),
            **_SHARE,
            "type": ["number", "string", "object"],
            "pattern": f"^{UNCHECKED}$|{TEMPLATE}",
        }
    ),
]
_OPTIONS: Final = ("name", "severity", "blocking")


@dataclass(frozen=True, slots=True)
class CheckDeclaration:
    """A check or an error rate in a defs.yaml; it is constructed later, with the definitions.

    If construction fails while Dagster resolves a defs.yaml, Dagster shows a traceback without the
    line.

    Attributes:
        make: Constructs it.
        place: Its position.
        kind: The field at that position that errors are about; empty for the position itself.
        output: The output to check; empty for each result.
    """

    make: Callable[[], Any]
    place: YamlPlace
    kind: str = ""
    output: str = ""

    def construct(self, subject: str) -> Any:
        """Return the check or the error rate; ``subject`` is its asset or pipeline in errors.

        Raises:
            DefsYamlError: The declaration is invalid; with file and line.
        """
        try:
            return self.make()
        except (DataOpsError, TypeError, ValueError) as error:
            raise self._blamed(error).error(subject, error) from None

    def _blamed(self, error: Exception) -> YamlPlace:
        """Return the position of the field that causes an error."""
        setting = getattr(error, "setting", "")
        field = {"name of a check": "name", "severity": "severity"}.get(setting, self.kind)
        return self.place.at(field) if self.kind else self.place


YamlChecks: TypeAlias = "Sequence[DeclaredCheck | CheckDeclaration]"
YamlErrorRate: TypeAlias = "ErrorRate | CheckDeclaration"


def constructed(value: Any, subject: str) -> Any:
    """Return a check or an error rate; values of Python are returned as they are.

    Raises:
        DefsYamlError: A declaration is invalid; with file and line.
    """
    return value.construct(subject) if isinstance(value, CheckDeclaration) else value


def resolve_checks(context: dg.ResolutionContext, models: Sequence[CheckModel]) -> YamlChecks:
    """Return the declarations of a list of checks, with templates filled in."""
    return [_declared(context.at_path(number), model) for number, model in enumerate(models)]


def _declared(context: dg.ResolutionContext, model: CheckModel) -> CheckDeclaration:
    fields = written(context, model)
    kind = next(kind for kind in _YAML if fields.get(kind) is not None)
    value = fields[kind]
    options = {name: value for name, value in fields.items() if name in _OPTIONS}
    make = partial(_check_of, kind, value, options, partial(beside, context))
    return CheckDeclaration(make, YamlPlace(context), kind, fields.get("output") or "")


def _check_of(
    kind: str, value: Any, options: Mapping[str, Any], absolute: Callable[[str], Path | str]
) -> DeclaredCheck:
    declare, yaml = check_kind_named(kind)
    if yaml.get("format") == "path" and isinstance(value, str):
        value = absolute(value)
    if "properties" in yaml:
        return declare(**value, **options)
    if "array" in yaml["type"]:
        values = [value] if isinstance(value, str) else value
        return declare(*values, **options)
    return declare(value, **options)


def resolve_error_rate(
    context: dg.ResolutionContext, model: float | str | ErrorRateModel | None
) -> YamlErrorRate:
    """Return the declared error rate, with templates filled in; ``None`` if there is none."""
    if model is None:
        return None
    values = written(context, model) if isinstance(model, dg.Model) else rendered(context, model)
    kind = "max_error_rate" if isinstance(values, Mapping) else ""
    return CheckDeclaration(partial(_rate_of, values), YamlPlace(context), kind)


def _rate_of(rate: Any) -> ErrorRate:
    """Return the largest share, or the check; ``None`` for no check."""
    if isinstance(rate, Mapping):
        return ErrorRateCheck(**rate)
    return None if rate == UNCHECKED else ErrorRateCheck(rate).max_error_rate
