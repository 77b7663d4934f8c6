"""What a defs.yaml says of checks: those declared of results, and how many records may fail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self, TypeAlias

import dagster as dg
from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from dagster_dataops.assets.checks import check_functions
from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.error_rate import ErrorRate, ErrorRateCheck
from dagster_dataops.assets.components.source_position import (
    TEMPLATE,
    YamlPlace,
    beside,
    or_template,
    rendered,
)
from dagster_dataops.errors import DataOpsError

UNCHECKED: Final = "unchecked"
_SHARE: Final[Mapping[str, Any]] = {"minimum": 0, "maximum": 1}
_COLUMNS: Final = WithJsonSchema(
    {"type": ["array", "string"], "items": {"type": "string"}, "minItems": 1, "minLength": 1}
)
_SEVERITY: Final = WithJsonSchema({"type": "string", "pattern": f"^(WARN|ERROR)$|{TEMPLATE}"})
_Columns: TypeAlias = Annotated[list[str] | str | None, _COLUMNS]


_NOT_SAID: Any = None  # of a field of one type: of a choice it could not be told which is wrong


class GravenessModel(dg.Model):
    """How grave it is when a check does not pass."""

    severity: Annotated[str | None, _SEVERITY] = Field(
        default=None, description="Of the check that did not pass: WARN or ERROR."
    )
    blocking: Annotated[bool | str, or_template("boolean")] = Field(
        default=False, description="Whether nothing downstream runs when it did not pass."
    )


class RowCountModel(dg.Model):
    """How many records there may be."""

    min: Annotated[int | str | None, or_template("integer", minimum=0)] = Field(
        default=None, description="At least so many."
    )
    max: Annotated[int | str | None, or_template("integer", minimum=0)] = Field(
        default=None, description="At most so many."
    )


_KINDS: Final = (
    *("row_count", "max_dropped", "required_columns", "no_nulls", "unique", "json_schema"),
)


class CheckModel(GravenessModel):
    """A check of what was published: one of its kinds, and how grave it is."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in _KINDS]}
    )

    row_count: RowCountModel = Field(
        default=_NOT_SAID, description="How many records there may be.", examples=[{"min": 1}]
    )
    max_dropped: Annotated[float | str | None, or_template("number", **_SHARE)] = Field(
        default=None, description="Share of the input records that may emit nothing."
    )
    required_columns: _Columns = Field(
        default=None, description="Columns that every record has.", examples=[["id", "text"]]
    )
    no_nulls: _Columns = Field(
        default=None, description="Columns that are never null or missing.", examples=[["text"]]
    )
    unique: _Columns = Field(
        default=None,
        description="Columns in all of which no two records agree.",
        examples=[["id"]],
    )
    json_schema: Annotated[
        str | dict[str, Any] | None, WithJsonSchema({"type": ["string", "object"]})
    ] = Field(
        default=None,
        description="A JSON Schema that every record is valid by, or the JSON file that it is in, "
        "its path taken from the folder of the defs.yaml.",
        examples=["document.schema.json"],
    )
    name: str = Field(
        default=_NOT_SAID, description="Unique among the checks of the asset; by default its kind."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            msg = f"a check is one of {', '.join(_KINDS)}"
            raise ValueError(msg)
        return self


class ErrorRateModel(GravenessModel):
    """How many records may fail, and how grave it is when more do."""

    max_error_rate: Annotated[float | str, or_template("number", **_SHARE)] = Field(
        default=0.0, description="Share of the records that may fail."
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
_Made: TypeAlias = Callable[..., DeclaredCheck]
_OF_COLUMNS: Final[Mapping[str, _Made]] = {
    "required_columns": check_functions.required_columns,
    "no_nulls": check_functions.no_nulls,
    "unique": check_functions.unique,
}


@dataclass(frozen=True, slots=True)
class CheckDeclaration:
    """A check as a defs.yaml declares it, made when the definitions are.

    Dagster would show what is wrong with it by a traceback, and only whose field it is in.

    Attributes:
        kind: The name of the function in `checks`.
        value: What that is given.
        options: Name, severity, and whether it blocks, where they are given.
        place: Where it stands.
    """

    kind: str
    value: Any
    options: Mapping[str, Any]
    place: YamlPlace

    def construct(self, subject: str) -> DeclaredCheck:
        """Return the check.

        Args:
            subject: What errors call the asset.

        Raises:
            DefsYamlError: It cannot be; with file and line.
        """
        try:
            return self._made()
        except (DataOpsError, TypeError, ValueError) as error:
            raise _blamed(self.place, error, self.kind).error(subject, error) from None

    def _made(self) -> DeclaredCheck:
        if self.kind in _OF_COLUMNS:
            columns = [self.value] if isinstance(self.value, str) else self.value
            return _OF_COLUMNS[self.kind](*columns, **self.options)
        if self.kind == "row_count":
            return check_functions.row_count(**self.value, **self.options)
        if self.kind == "max_dropped":
            return check_functions.max_dropped(self.value, **self.options)
        return check_functions.json_schema(self.value, **self.options)


YamlChecks: TypeAlias = "Sequence[DeclaredCheck | CheckDeclaration]"


def constructed(given: YamlChecks, subject: str) -> Sequence[DeclaredCheck]:
    """Return the checks of one asset.

    Raises:
        DefsYamlError: One of them cannot be; with file and line.
    """
    return [one.construct(subject) if isinstance(one, CheckDeclaration) else one for one in given]


def resolve_checks(context: dg.ResolutionContext, models: Sequence[CheckModel]) -> YamlChecks:
    """Return what a list of checks declares, templates filled in."""
    return [_declared(context.at_path(number), model) for number, model in enumerate(models)]


def _declared(context: dg.ResolutionContext, model: CheckModel) -> CheckDeclaration:
    given: dict[str, Any] = rendered(context, model.model_dump(exclude_unset=True))
    kind = next(kind for kind in _KINDS if given.get(kind) is not None)
    value = given[kind]
    if kind == "json_schema" and isinstance(value, str):
        value = beside(context, value)
    options = {name: value for name, value in given.items() if name in _OPTIONS}
    return CheckDeclaration(kind, value, options, YamlPlace(context))


@dataclass(frozen=True, slots=True)
class ErrorRateDeclaration:
    """How many records may fail, as a defs.yaml declares it.

    Attributes:
        given: The share, or arguments of the check.
        place: Where it stands.
    """

    given: Any
    place: YamlPlace

    def construct(self, subject: str) -> ErrorRate:
        """Return the share, or the check; None for no check.

        Args:
            subject: What errors say it is of.

        Raises:
            DefsYamlError: It cannot be; with file and line.
        """
        if self.given == UNCHECKED:
            return None
        whole = isinstance(self.given, Mapping)
        try:
            check = ErrorRateCheck(**self.given) if whole else ErrorRateCheck(self.given)
        except (DataOpsError, TypeError, ValueError) as error:
            place = _blamed(self.place, error, "max_error_rate") if whole else self.place
            raise place.error(subject, error) from None
        return check if whole else check.max_error_rate


YamlErrorRate: TypeAlias = "float | ErrorRateCheck | ErrorRateDeclaration | None"


def rate_of(given: YamlErrorRate, subject: str) -> ErrorRate:
    """Return how many records may fail.

    Raises:
        DefsYamlError: It cannot be; with file and line.
    """
    return given.construct(subject) if isinstance(given, ErrorRateDeclaration) else given


def resolve_error_rate(
    context: dg.ResolutionContext, model: float | str | ErrorRateModel | None
) -> YamlErrorRate:
    """Return how many records may fail, templates filled in; None where nothing is said."""
    if model is None:
        return None
    given = model.model_dump(exclude_unset=True) if isinstance(model, dg.Model) else model
    return ErrorRateDeclaration(rendered(context, given), YamlPlace(context))


def _blamed(place: YamlPlace, error: Exception, kind: str) -> YamlPlace:
    """Return the place of the field that an error is about."""
    setting = getattr(error, "setting", kind)
    return place.at({"name of a check": "name", "severity": "severity"}.get(setting, kind))
