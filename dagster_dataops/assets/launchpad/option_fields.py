"""Options of operators as fields of Dagster's config, with their values of the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.launchpad.json_schema_types import (
    ANY,
    PLAIN_TYPES,
    config_type,
    nullable,
    phrase,
    properties,
    shape,
)
from dagster_dataops.assets.launchpad.option_types import OptionType, option_type
from dagster_dataops.assets.launchpad.shown_values import is_showable, same_value
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.operators.chains.chain import PartOptions
from dagster_dataops.operators.kinds.kind_table import data_methods
from dagster_dataops.operators.options.artefact_options import referenced
from dagster_dataops.operators.options.docstrings import option_descriptions, without_rst
from dagster_dataops.operators.secrets.secret_names import is_secret
from dagster_dataops.operators.secrets.secret_options import holds_secret

_FLOAT: Final = PLAIN_TYPES[float]
_Shown: TypeAlias = tuple[dg.Field, Any]


@dataclass(frozen=True, slots=True)
class ShownOptions:
    """Options in the launchpad.

    The values are not part of the type: nodes with the same options share it, whatever their
    values. Dagster builds, compares and stores each type once more for each job.

    Attributes:
        config: The type of a mapping with a field for each option.
        values: The values of the pipeline, by name.
        left_out: A sentence about the options that cannot be shown, or empty.
    """

    config: dg.Shape
    values: Mapping[str, Any]
    left_out: str = ""

    def field(self, subject: str, **more: Any) -> dg.Field:
        """Return an optional field of the options of ``subject``."""
        text = f"Options of {subject}.{self.left_out}"
        return dg.Field(self.config, is_required=False, description=text, **more)


def shown_options(annotations: PartOptions, options: Mapping[str, Any]) -> ShownOptions | None:
    """Return the options that the launchpad can show; ``None`` if it can show none."""
    texts = option_descriptions(annotations.target, data_methods())
    by_name = {
        name: option_field(name, annotations.get(name, Any), value, texts.get(name, ""))
        for name, value in options.items()
    }
    shown = {name: field for name, field in by_name.items() if not isinstance(field, str)}
    if not shown:
        return None
    fields = {name: field for name, (field, _) in shown.items()}
    former = {
        old: _former_field(fields[new], new)
        for old, new in annotations.present.items()
        if new in fields
    }
    missing = ", ".join(
        f"`{name}` ({why})" for name, why in by_name.items() if isinstance(why, str)
    )
    return ShownOptions(
        config=shape(fields | former),
        values={name: value for name, (_, value) in shown.items()},
        left_out=missing and f" Not shown, with their values of the pipeline: {missing}.",
    )


def _former_field(field: dg.Field, name: str) -> dg.Field:
    """Return the field of a former name, which the launchpad does not fill in."""
    return dg.Field(field.config_type, is_required=False, description=f"Named `{name}` now.")


def option_field(name: str, annotation: Any, value: Any, description: str) -> _Shown | str:
    """Return the field of an option and its value in it, or the reason why it has none."""
    if nodes := ", ".join(referenced(value)):
        return f"artefact of {nodes}"
    if isinstance(annotation, PartOptions):
        part = shown_options(annotation, value)
        return (part.field(f"part {name}"), part.values) if part else "no options that can be shown"
    numeric = isinstance(value, (int, float))  # a number of tokens is not a secret
    if holds_secret(name, value) or (is_secret(name) and not numeric):
        return "secret"
    kind = None if annotation is Any else option_type(annotation)
    if kind is not None:
        return _typed(kind, value, description)
    typed = value is not None or annotation is Any  # by its value
    return _untyped(value, description) if typed else _name_of(annotation)


def _typed(kind: OptionType, value: Any, description: str) -> _Shown | str:
    """Return the field and the value of an option of a known type."""
    text = _with_allowed(description or without_rst(kind.description), kind.allowed)
    if value is None:
        return _shown(kind.config, None, text)
    dumped = _dumped(kind, value)
    if dumped is None:  # the value does not have the annotated type
        return _shown(ANY, value, text) if is_showable(value) else _name_of(type(value))
    if fields := _fields(kind, dumped):
        field = dg.Field(shape(fields), description=text or None)
        return field, field.default_value
    return _shown(kind.config, dumped, text)


def _untyped(value: Any, description: str) -> _Shown | str:
    """Return the field and the value of an option with the type of its value."""
    if not is_showable(value):
        return _name_of(type(value))
    return _shown(PLAIN_TYPES.get(type(value), ANY), value, description)


def _fields(kind: OptionType, dumped: Any) -> dict[str, dg.Field]:
    """Return the fields of a dataclass or model, empty for other values."""
    schemas = properties(kind.schema)
    if not isinstance(dumped, dict) or schemas.keys() != dumped.keys():
        return {}
    return {
        name: default_field(
            config_type(schema),
            dumped[name],
            _with_allowed(without_rst(schema.get("description", "")), phrase(schema)),
        )
        for name, schema in schemas.items()
    }


def _shown(config: Any, value: Any, description: str) -> _Shown:
    """Return an optional field and a value in it. It accepts null, unless it is a choice."""
    chosen = isinstance(config, dg.Enum) and value is not None
    kind = config if chosen else nullable(config)
    field = dg.Field(kind, is_required=False, description=description or None)
    return field, float(value) if config is _FLOAT and value is not None else value


def default_field(config: Any, default: Any, description: str) -> dg.Field:
    """Return an optional field with a default, otherwise as `_shown`."""
    field, value = _shown(config, default, description)
    return dg.Field(field.config_type, default_value=value, description=field.description)


def _dumped(kind: OptionType, value: Any) -> Any:
    """Return the JSON form of ``value``; ``None`` if loading it gives another value."""
    try:
        dumped = kind.dump(value)
        back = kind.load(dumped)
    except Exception:  # noqa: BLE001 - methods of the user's class run here
        return None
    equal = same_value(back, value) or digest(back) == digest(value)
    return dumped if equal and is_showable(dumped) else None


def _with_allowed(description: str, allowed: str) -> str:
    """Return a description with the allowed values, unless it contains them."""
    if not allowed or allowed in description:
        return description
    said = f"{allowed[0].upper()}{allowed[1:]}."
    return f"{description.rstrip()}\n\n{said}" if description else said


def _name_of(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind).removeprefix("typing.")
