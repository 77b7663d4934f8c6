"""LaunchpadField: an option of an operator in the launchpad."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.assets.launchpad.json_schema_types import (
    config_type,
    optional,
    phrase,
    properties,
)
from dagster_dataops.assets.launchpad.option_types import OptionType, option_type
from dagster_dataops.assets.launchpad.shown_values import is_showable, same_value
from dagster_dataops.hashing.values import digest
from dagster_dataops.operators.chains.chain import PartOptions
from dagster_dataops.operators.options.docstrings import option_descriptions
from dagster_dataops.operators.options.secret_options import holds_secret, is_secret

_PLAIN: Final = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class LaunchpadField:
    """An option in the launchpad, or a field of one.

    Attributes:
        name: Name in the launchpad.
        config: Type of Dagster's config, or the fields of the option.
        default: JSON form of the pipeline's value; meaningless for an option with fields.
        description: Text, with the allowed values.
    """

    name: str
    config: "Any | tuple[LaunchpadField, ...]"
    default: Any
    description: str


def option_field(name: str, annotation: Any, value: Any, description: str) -> LaunchpadField | str:
    """Return the field of an option, or the reason why it has none.

    Args:
        name: Name of the option.
        annotation: Type of the option, ``Any`` without an annotation.
        value: Value of the pipeline.
        description: Text of the docstring, or empty.
    """
    if isinstance(annotation, PartOptions):
        return _part_field(name, annotation, value)
    numeric = isinstance(value, (int, float))  # a number of tokens is not a secret
    if holds_secret(name, value) or (is_secret(name) and not numeric):
        return "secret"
    if annotation in _PLAIN and type(value) is annotation and is_showable(value):
        return LaunchpadField(name, annotation, value, description)
    kind = None if annotation is Any else option_type(annotation)
    if kind is not None:
        return _typed(name, kind, value, description)
    untold = value is None and annotation is not Any
    return _name_of(annotation) if untold else _untyped(name, value, description)


def _part_field(
    name: str, annotations: PartOptions, options: Mapping[str, Any]
) -> LaunchpadField | str:
    """Return the field of a part of a chain, with a field for each of its options."""
    texts = option_descriptions(annotations.target)
    found = {
        one: option_field(one, annotations.get(one, Any), value, texts.get(one, ""))
        for one, value in options.items()
    }
    fields = tuple(one for one in found.values() if isinstance(one, LaunchpadField))
    if not fields:
        return "no options that can be shown"
    left_out = [f"`{one}` ({why})" for one, why in found.items() if isinstance(why, str)]
    text = f"Options of part {name}."
    text += f" Not shown: {', '.join(left_out)}." if left_out else ""
    return LaunchpadField(name, fields, None, text)


def _typed(name: str, kind: OptionType, value: Any, description: str) -> LaunchpadField | str:
    """Return the field of an option of a known type."""
    text = _with_allowed(description or kind.description, kind.allowed)
    if value is None:
        return LaunchpadField(name, optional(kind.config), None, text)
    dumped = _dumped(kind, value)
    if dumped is None:  # the value does not have the annotated type
        field = _untyped(name, value, text)
        return field if isinstance(field, str) else LaunchpadField(name, Any, value, text)
    return LaunchpadField(name, _fields(kind, dumped) or kind.config, dumped, text)


def _untyped(name: str, value: Any, description: str) -> LaunchpadField | str:
    """Return the field of an option without a known annotation; its value has the type."""
    if not is_showable(value):
        return _name_of(type(value))
    return LaunchpadField(name, type(value) if type(value) in _PLAIN else Any, value, description)


def _fields(kind: OptionType, dumped: Any) -> tuple[LaunchpadField, ...]:
    """Return the fields of a dataclass or model, an empty tuple for other values."""
    schemas = properties(kind.schema)
    if not isinstance(dumped, dict) or schemas.keys() != dumped.keys():
        return ()
    return tuple(
        LaunchpadField(
            name,
            config_type(schema) if dumped[name] is not None else optional(config_type(schema)),
            dumped[name],
            _with_allowed(schema.get("description", ""), phrase(schema)),
        )
        for name, schema in schemas.items()
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
