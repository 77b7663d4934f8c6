"""Options of operators as fields of Dagster's config.

A field shows an option with its value of the pipeline.
"""

import functools
from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.launchpad.json_schema_types import (
    ANY,
    PLAIN_TYPES,
    config_type,
    nullable,
    phrase,
    properties,
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


class OnceField(dg.Field):
    """A field that writes its default as JSON once; Dagster asks for the text five times."""

    @functools.cached_property
    def default_value_as_json_str(self) -> str:
        """The default as JSON."""
        return super().default_value_as_json_str


def options_field(
    subject: str, annotations: PartOptions, options: Mapping[str, Any]
) -> dg.Field | None:
    """Return a field with a field for each option; ``None`` if none can be shown.

    Its description names the options that are left out, with the reason.

    Args:
        subject: The owner of the options, for the description.
        annotations: Types of the options by name, as far as they are known.
        options: Values of the pipeline, by name.
    """
    texts = option_descriptions(annotations.target, data_methods())
    found = {
        name: _field_of(name, annotations.get(name, Any), value, texts.get(name, ""))
        for name, value in options.items()
    }
    fields = {name: one for name, one in found.items() if isinstance(one, dg.Field)}
    if not fields:
        return None
    left_out = [f"`{name}` ({why})" for name, why in found.items() if isinstance(why, str)]
    text = f"Options of {subject}."
    if left_out:
        text += f" Not shown, with their values of the pipeline: {', '.join(left_out)}."
    former = {
        old: _former_field(fields[new], new)
        for old, new in annotations.present.items()
        if new in fields
    }
    return OnceField(dg.Shape(fields | former), description=text)


def _former_field(field: dg.Field, name: str) -> dg.Field:
    """Return the field of a former name, which the launchpad does not fill in."""
    return dg.Field(field.config_type, is_required=False, description=f"Named `{name}` now.")


def _field_of(name: str, annotation: Any, value: Any, description: str) -> dg.Field | str:
    """Return `option_field`; nodes with equal plain options share their fields."""
    try:
        hash(annotation)
        shared = type(value) in PLAIN_TYPES
    except TypeError:
        shared = False
    return (_shared_field if shared else option_field)(name, annotation, value, description)


def option_field(name: str, annotation: Any, value: Any, description: str) -> dg.Field | str:
    """Return the field of an option, or the reason why it has none.

    Args:
        name: Name of the option.
        annotation: Type of the option, ``Any`` without an annotation.
        value: Value of the pipeline.
        description: Text of the docstring, or empty.
    """
    if nodes := ", ".join(referenced(value)):
        return f"artefact of {nodes}"
    if isinstance(annotation, PartOptions):
        part = options_field(f"part {name}", annotation, value)
        return part or "no options that can be shown"
    numeric = isinstance(value, (int, float))  # a number of tokens is not a secret
    if holds_secret(name, value) or (is_secret(name) and not numeric):
        return "secret"
    kind = None if annotation is Any else option_type(annotation)
    if kind is not None:
        return _typed(kind, value, description)
    typed = value is not None or annotation is Any  # by its value
    return _untyped(value, description) if typed else _name_of(annotation)


# By type as well: 1, 1.0 and True are equal.
_shared_field = functools.lru_cache(maxsize=4096, typed=True)(option_field)


def _typed(kind: OptionType, value: Any, description: str) -> dg.Field | str:
    """Return the field of an option of a known type."""
    text = _with_allowed(description or without_rst(kind.description), kind.allowed)
    if value is None:
        return default_field(kind.config, None, text)
    dumped = _dumped(kind, value)
    if dumped is None:  # the value does not have the annotated type
        return default_field(ANY, value, text) if is_showable(value) else _name_of(type(value))
    if fields := _fields(kind, dumped):
        return OnceField(dg.Shape(fields), description=text or None)
    return default_field(kind.config, dumped, text)


def _untyped(value: Any, description: str) -> dg.Field | str:
    """Return the field of an option with the type of its value."""
    if not is_showable(value):
        return _name_of(type(value))
    return default_field(PLAIN_TYPES.get(type(value), ANY), value, description)


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


def default_field(config: Any, default: Any, description: str) -> dg.Field:
    """Return an optional field. It accepts null, unless it is a choice."""
    chosen = isinstance(config, dg.Enum) and default is not None
    return OnceField(
        config if chosen else nullable(config),
        default_value=float(default) if config is _FLOAT and default is not None else default,
        is_required=False,
        description=description or None,
    )


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
