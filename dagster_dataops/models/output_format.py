"""`OutputFormat`: the form that the text of a reply must have."""

import functools
import re
from typing import Any, Final

import orjson

from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.models.json_values import LISTS, OBJECTS, json_texts, json_value

_MADE: Final = 128  # forms that are remembered
_MAX_TEXT: Final = 300
_MAX_FAULTS: Final = 5
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ANY_OBJECT: Final = {"type": "object"}
_OF_SCHEMAS: Final = ("properties", "$defs", "definitions")  # schemas by name
_TYPES: Final = ("object", "array", "string")
_KINDS: Final = {OBJECTS: "object", LISTS: "list"}
_DEEPEST: Final = 20  # references
_IN_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems")


def output_format(wanted: Any) -> "OutputFormat":
    """Return the form of a pydantic model or a dict, see `OutputFormat`; equal ones are made once.

    Raises:
        DefinitionError: ``wanted`` is neither.
        MissingExtraError: jsonschema-rs is not installed, which a JSON Schema needs.
    """
    if isinstance(wanted, type):
        return _form(wanted)
    if not isinstance(wanted, dict):
        return OutputFormat(wanted)
    try:
        return _form(orjson.dumps(wanted))
    except orjson.JSONEncodeError as error:
        reason = f"response_format is no JSON Schema: {error}"
        raise DefinitionError(reason) from None


@functools.lru_cache(maxsize=_MADE)
def _form(wanted: type | bytes) -> "OutputFormat":
    return OutputFormat(orjson.loads(wanted) if isinstance(wanted, bytes) else wanted)


class OutputFormat:
    """The form that the text of a reply must have.

    Args:
        wanted: A pydantic model, or a JSON Schema, or the ``response_format`` of a request:
            ``{"type": "json_schema", "json_schema": {...}}``, ``{"type": "json_object"}``.

    Attributes:
        field: The ``response_format`` of the request.

    Raises:
        DefinitionError: ``wanted`` is neither.
        MissingExtraError: jsonschema-rs is not installed, which a JSON Schema needs.
    """

    def __init__(self, wanted: Any) -> None:
        self._model: Any = wanted if hasattr(wanted, "model_json_schema") else None
        if self._model is None and not isinstance(wanted, dict):
            reason = f"response_format is {wanted!r}; give a pydantic model or a JSON Schema"
            raise DefinitionError(reason)
        if self._model is None:
            schema, self.field = _of_schema(wanted)
            self._validator = _validator(schema)
        else:
            schema = self._model.model_json_schema()
            self.field = _field(schema)
        kinds = _types_of(schema, schema)
        self._starts = (OBJECTS if "object" in kinds else "") + (LISTS if "array" in kinds else "")
        self._scalars = bool(kinds - {"object", "array"})

    def parse(self, text: str) -> Any:
        """Return the first value in the text of a reply that has the form.

        Raises:
            ValueError: None has it; the message names the place.
        """
        fault: ValueError | None = None
        for piece in json_texts(text, self._starts, scalars=self._scalars):
            try:
                return self._checked(piece)
            except ValueError as error:
                fault = _better(fault, error)
        wanted = _KINDS.get(self._starts, "value") if not self._scalars else "value"
        raise fault or ValueError(f"the text has no JSON {wanted}: {text[:_MAX_TEXT]!r}")

    def _checked(self, text: str) -> Any:
        value = json_value(text)
        if self._model is not None:
            return self._instance(text)
        errors = list(self._validator.iter_errors(value))[:_MAX_FAULTS] if self._validator else []
        if errors:
            places = [".".join(map(str, error.instance_path)) for error in errors]
            raise _OtherFormError(_faults(places, [error.message for error in errors])[:_MAX_TEXT])
        return value

    def _instance(self, text: str) -> Any:
        from pydantic import ValidationError

        try:
            return self._model.model_validate_json(text)
        except ValidationError as error:
            faults = error.errors(include_url=False)[:_MAX_FAULTS]
            places = [".".join(map(str, fault["loc"])) for fault in faults]
            raise _OtherFormError(_faults(places, [fault["msg"] for fault in faults])) from None


class _OtherFormError(ValueError):
    """The text is JSON, but of another form."""


def _better(fault: ValueError | None, other: ValueError) -> ValueError:
    """Return the fault that says more: the first one of JSON, or else the first one."""
    said_more = isinstance(other, _OtherFormError) and not isinstance(fault, _OtherFormError)
    return other if fault is None or said_more else fault


def _types_of(schema: Any, root: dict[str, Any], depth: int = 0) -> set[str]:
    """Return the types that a JSON Schema allows, as far as its top tells."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return set(_TYPES)
    inner = [part for name in ("anyOf", "oneOf") for part in schema.get(name) or ()]
    if "$ref" in schema:
        inner = [_referred(schema["$ref"], root)]
    if inner and "type" not in schema:
        return {kind for part in inner for kind in _types_of(part, root, depth + 1)}
    return _own_types(schema)


def _own_types(schema: dict[str, Any]) -> set[str]:
    """Return the types that a JSON Schema names, or that its keywords are about."""
    types = set(_TYPES)
    named = schema.get("type")
    if named is not None:
        types = {named} if isinstance(named, str) else set(named)
    elif "enum" in schema or "const" in schema:
        types = {_type_of(member) for member in schema.get("enum") or [schema.get("const")]}
    elif any(name in schema for name in ("properties", "required", "additionalProperties")):
        types = {"object"}
    elif "items" in schema or "prefixItems" in schema:
        types = {"array"}
    return types


def _type_of(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "string"


def _referred(name: Any, root: dict[str, Any]) -> Any:
    """Return the schema that a reference names; ``None`` if it is not there."""
    schema: Any = root
    for part in str(name).removeprefix("#/").split("/"):
        schema = schema.get(part) if isinstance(schema, dict) else None
    return root if name == "#" else schema


def _of_schema(wanted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a JSON Schema, and the field of the request, of either form of a dict."""
    if wanted.get("type") == "json_object":
        return _ANY_OBJECT, wanted
    inner = wanted.get("json_schema")
    if wanted.get("type") == "json_schema" and isinstance(inner, dict) and "schema" in inner:
        return inner["schema"], wanted
    return wanted, _field(wanted)


def _field(schema: dict[str, Any]) -> dict[str, Any]:
    name = _NAME.sub("_", str(schema.get("title") or "reply"))[:64]
    inner = {"name": name, "strict": True, "schema": strict(schema)}
    return {"type": "json_schema", "json_schema": inner}


def _faults(places: list[str], messages: list[str]) -> str:
    """Return the faults as a text; the place of a fault of the whole text is empty."""
    both = zip(places, messages, strict=True)
    return "; ".join(f"{place}: {message}" if place else message for place, message in both)


def plain(value: Any) -> Any:
    """Return a parsed value as JSON."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def strict(schema: Any) -> Any:
    """Return a JSON Schema as servers want it: no further properties, and all are required."""
    if not isinstance(schema, dict):
        return schema
    changed = dict(schema)
    for name in _OF_SCHEMAS:
        if isinstance(changed.get(name), dict):
            changed[name] = {inner: strict(part) for inner, part in changed[name].items()}
    for name in _IN_LISTS:
        if isinstance(changed.get(name), list):
            changed[name] = [strict(part) for part in changed[name]]
    if "items" in changed:
        changed["items"] = strict(changed["items"])
    if "properties" in changed:
        changed["additionalProperties"] = False
        changed["required"] = list(changed["properties"])
    return changed


def _validator(schema: dict[str, Any]) -> Any:
    try:
        import jsonschema_rs
    except ImportError:
        raise MissingExtraError("a response_format given as JSON Schema", "llm") from None
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = f"response_format is no valid JSON Schema: {error}"
        raise DefinitionError(reason) from None


def _refuse(address: str) -> Any:
    msg = f"{address} would have to be read; put it into the schema"
    raise ValueError(msg)
