"""JSON schemas as types of Dagster's config; the remaining limits of each schema in words."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import dagster as dg

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted

ANY: Final = dg.Field(Any).config_type
_MAPPING: Final = dg.Field(dict).config_type
PLAIN_TYPES: Final[Mapping[type, Any]] = {
    str: dg.StringSource,
    int: dg.IntSource,
    float: dg.Field(float).config_type,
    bool: dg.BoolSource,
}
_JSON_TYPES: Final[Mapping[str, Any]] = {
    "string": PLAIN_TYPES[str],
    "integer": PLAIN_TYPES[int],
    "number": PLAIN_TYPES[float],
    "boolean": PLAIN_TYPES[bool],
}
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


def config_type(schema: Schema, depth: int = 0) -> Any:
    """Return the type for Dagster's config, `ANY` if none fits.

    ``depth`` is the number of enclosing types; it limits a type that contains itself.
    """
    schema = resolved(schema)
    if depth > _DEEPEST:
        return ANY
    if "enum" in schema or "const" in schema:
        return _choice(schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return _union(schema, depth)
    kind = str(schema.get("type"))
    if kind in {"object", "array"}:
        return _mapping(schema, depth) if kind == "object" else _list(schema, depth)
    return _JSON_TYPES.get(kind, ANY)


def _list(schema: Schema, depth: int) -> Any:
    members = schema.get("prefixItems") or [schema.get("items") or {}]
    inner = [config_type(_with_defs(member, schema), depth + 1) for member in members]
    # Dagster's list of any values accepts no null.
    alike = len({member.key for member in inner}) == 1 and inner[0] is not ANY
    return dg.Array(inner[0]) if alike else ANY


def _mapping(schema: Schema, depth: int) -> Any:
    values = schema.get("additionalProperties")
    if not isinstance(values, Mapping) or "properties" in schema:
        return _MAPPING
    inner = config_type(_with_defs(values, schema), depth + 1)
    return _MAPPING if inner is ANY else dg.Map(str, inner)  # type: ignore[no-untyped-call]


def _union(schema: Schema, depth: int) -> Any:
    members = [_with_defs(member, schema) for member in schema["anyOf"]]
    others = [member for member in members if resolved(member).get("type") != "null"]
    if len(others) != 1:
        return ANY
    inner = config_type(others[0], depth + 1)
    return inner if inner is ANY else nullable(inner)


def _choice(values: list[Any]) -> Any:
    choices = [value for value in values if value is not None]
    kinds = {type(value) for value in choices}
    if kinds not in ({int}, {str}):
        return ANY
    config: Any = dg.IntSource if kinds == {int} else choice(choices)
    return config if len(choices) == len(values) else nullable(config)


def choice(texts: Sequence[str]) -> dg.Enum:
    """Return the type of one of some texts; Dagster shows its name to the user."""
    title = f"Literal[{', '.join(map(repr, texts))}]"
    return dg.Enum(title, list(map(dg.EnumValue, texts)))


class _Nullable(dg.Noneable):
    """A type that also accepts null. It lists the types in it once.

    Dagster asks for them several times for each field of each node.
    """

    @override
    def type_iterator(self) -> Iterator[Any]:
        return iter(self._types)

    @cached_property
    def _types(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(super().type_iterator()))


def nullable(config: Any) -> Any:
    """Return the config type that also accepts null."""
    return config if isinstance(config, dg.Noneable) else _Nullable(config)


def shape(fields: Mapping[str, dg.Field]) -> dg.Shape:
    """Return the type of a mapping with these fields; equal ones are one object."""
    return dg.Shape(fields)  # type: ignore[no-untyped-call]


def is_choice(config: Any) -> bool:
    """Return whether a config type lists its values, or those of its items."""
    return any(isinstance(part, dg.Enum) for part in (config, getattr(config, "inner_type", None)))


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
    limits = [_FORMATS[schema["format"]]] if schema.get("format") in _FORMATS else []
    limits += [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]
    if schema.get("minItems") == schema.get("maxItems") and "minItems" in schema:
        limits = [f"exactly {counted(schema['minItems'], 'items')}"]
    if schema.get("uniqueItems"):
        limits.append("a list in which nothing counts twice")
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if schema.get("type") == "array" and config_type(schema) is ANY and not limits:
        limits.append("a list")
    if values:
        limits.append(f"one of {', '.join(map(_shown, values))}")
    if "anyOf" in schema:
        limits += _alternatives([_with_defs(member, schema) for member in schema["anyOf"]])
    return ", ".join(limits)


def _alternatives(members: list[Schema]) -> list[str]:
    others = [member for member in members if resolved(member).get("type") != "null"]
    if len(others) == 1:
        return [text] if (text := phrase(others[0])) else []
    names = dict.fromkeys(phrase(member) or str(resolved(member).get("type")) for member in members)
    return [" or ".join("null" if name == "None" else name for name in names)]


def _shown(value: Any) -> str:
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)
