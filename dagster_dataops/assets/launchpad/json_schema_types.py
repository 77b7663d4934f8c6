"""JSON schemas as types of Dagster's config; the remaining limits of each schema in words."""

import enum
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, Literal, Optional

from dagster_dataops.quantities import counted

_PLAIN: Final = {"string": str, "integer": int, "number": float, "boolean": bool}
_FORMATS: Final = {
    "date-time": "a date and time such as 2026-01-31T18:30:00",
    "date": "a date such as 2026-01-31",
    "time": "a time such as 18:30:00",
    "duration": "a duration such as PT30S or P1DT12H",
    "regex": "a regular expression",
    "uuid": "a UUID",
    "binary": "bytes, as text in UTF-8",
}
_BOUNDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "like {}",
}
_DEEPEST: Final = 8

Schema = Mapping[str, Any]


def config_type(schema: Schema, *, inside: bool = False, depth: int = 0) -> Any:
    """Return the type for Dagster's config, ``Any`` if none fits.

    Args:
        schema: JSON schema with its ``$defs``.
        inside: Whether it is part of another type, where Dagster accepts no ``Literal``.
        depth: Number of enclosing types; limits a type that contains itself.
    """
    schema = resolved(schema)
    if depth > _DEEPEST:
        return Any
    if "enum" in schema or "const" in schema:
        return _choice(schema.get("enum", [schema.get("const")]), inside=inside)
    if "anyOf" in schema:
        return _union(schema, depth)
    return _composed(schema, depth) or _PLAIN.get(str(schema.get("type")), Any)


def _composed(schema: Schema, depth: int) -> Any:
    """Return the type of lists and objects, ``None`` for others."""
    if schema.get("type") == "object":
        return _mapping(schema, depth)
    if schema.get("type") != "array":
        return None
    members = schema.get("prefixItems") or [schema.get("items") or {}]
    inner = {
        config_type(_with_defs(member, schema), inside=True, depth=depth + 1) for member in members
    }
    # Dagster's list of any values accepts no null.
    return list[inner.pop()] if len(inner) == 1 and Any not in inner else Any  # type: ignore[misc]


def _mapping(schema: Schema, depth: int) -> Any:
    values = schema.get("additionalProperties")
    if not isinstance(values, Mapping) or "properties" in schema:
        return dict
    inner = config_type(_with_defs(values, schema), inside=True, depth=depth + 1)
    return dict if inner is Any else dict[str, inner]  # type: ignore[valid-type]


def _union(schema: Schema, depth: int) -> Any:
    members = [_with_defs(member, schema) for member in schema["anyOf"]]
    others = [member for member in members if resolved(member).get("type") != "null"]
    if len(others) != 1:
        return Any
    inner = config_type(others[0], inside=True, depth=depth + 1)
    return inner if inner is Any else Optional[inner]  # noqa: UP045 - made at run time


def _choice(values: list[Any], *, inside: bool) -> Any:
    texts = [value for value in values if value is not None]
    if all(type(value) is int for value in texts) and texts:
        return int if len(texts) == len(values) else int | None
    if not texts or not all(isinstance(value, str) for value in texts):
        return Any
    if not inside and len(texts) == len(values):
        return Literal[tuple(texts)]
    named = _named(texts)
    return named if named is Any or len(texts) == len(values) else Optional[named]  # noqa: UP045


def _named(texts: list[str]) -> Any:
    """Return an enum whose members are ``texts``, the only choice Dagster accepts inside a type.

    Dagster identifies the enum by its name and shows the name to the user.
    """
    title = f"Literal[{', '.join(map(repr, texts))}]"
    try:
        return enum.Enum(title, {text: text for text in texts})
    except (ValueError, TypeError):  # Python keeps some names, such as "mro"
        return Any


def optional(config: Any) -> Any:
    """Return the config type that also accepts null."""
    if typing.get_origin(config) is Literal:
        config = _named(list(typing.get_args(config)))
    if config is Any or typing.get_origin(config) in {typing.Union, types.UnionType}:
        return config
    return Optional[config]  # noqa: UP045 - made at run time


def is_choice(config: Any) -> bool:
    """Return whether a config type lists its values."""
    members = [config, *typing.get_args(config)]
    return any(
        typing.get_origin(member) is Literal
        or (isinstance(member, type) and issubclass(member, enum.Enum))
        for member in members
    )


def resolved(schema: Schema) -> Schema:
    """Return the schema with its references to other schemas resolved."""
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            break
        name = schema["$ref"].rpartition("/")[2]
        schema = {**_with_defs(schema["$defs"][name], schema)}
    return schema


def _with_defs(schema: Schema, around: Schema) -> Schema:
    return {**schema, "$defs": around["$defs"]} if "$defs" in around else schema


def properties(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of a model's fields, each with its ``$defs``."""
    schema = resolved(schema)
    return {name: _with_defs(field, schema) for name, field in schema.get("properties", {}).items()}


def phrase(schema: Schema) -> str:
    """Return the limits of a schema that Dagster's config cannot express, in words."""
    schema = resolved(schema)
    found = [_FORMATS[schema["format"]]] if schema.get("format") in _FORMATS else []
    found += [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]
    if schema.get("minItems") == schema.get("maxItems") and "minItems" in schema:
        found = [f"exactly {counted(schema['minItems'], 'items')}"]
    if schema.get("uniqueItems"):
        found.append("a list in which nothing counts twice")
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if schema.get("type") == "array" and config_type(schema) is Any and not found:
        found.append("a list")
    if values:
        found.append(f"one of {', '.join(map(_shown, values))}")
    if "anyOf" in schema:
        found += _alternatives([_with_defs(member, schema) for member in schema["anyOf"]])
    return ", ".join(found)


def _alternatives(members: list[Schema]) -> list[str]:
    others = [member for member in members if resolved(member).get("type") != "null"]
    if len(others) == 1:
        return [text] if (text := phrase(others[0])) else []
    names = dict.fromkeys(phrase(member) or str(resolved(member).get("type")) for member in members)
    return [" or ".join("null" if name == "None" else name for name in names)]


def _shown(value: Any) -> str:
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)
