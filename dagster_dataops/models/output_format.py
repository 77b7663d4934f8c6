"""`OutputFormat`: the form that the text of a reply must have."""

import functools
import re
from typing import Any, Final

import orjson

from dagster_dataops.errors import DefinitionError, MissingExtraError

_MADE: Final = 128  # forms that are remembered
_MAX_TEXT: Final = 300
_MAX_FAULTS: Final = 5
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ANY_OBJECT: Final = {"type": "object"}
_OF_SCHEMAS: Final = ("properties", "$defs", "definitions")  # schemas by name
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
        self._model = wanted if hasattr(wanted, "model_json_schema") else None
        if self._model is None and not isinstance(wanted, dict):
            reason = f"response_format is {wanted!r}; give a pydantic model or a JSON Schema"
            raise DefinitionError(reason)
        if self._model is None:
            schema, self.field = _of_schema(wanted)
            self._validator = _validator(schema)
        else:
            self.field = _field(self._model.model_json_schema())

    def parse(self, text: str) -> Any:
        """Return the value in the text of a reply.

        Raises:
            ValueError: It does not have the form; the message names the place.
        """
        text = json_part(text)
        if self._model is None:
            return self._checked(text)
        from pydantic import ValidationError

        try:
            return self._model.model_validate_json(text)
        except ValidationError as error:
            faults = error.errors(include_url=False)[:_MAX_FAULTS]
            places = [".".join(map(str, one["loc"])) for one in faults]
            raise ValueError(_faults(places, [one["msg"] for one in faults])) from None

    def _checked(self, text: str) -> Any:
        value = orjson.loads(text)
        errors = list(self._validator.iter_errors(value))[:_MAX_FAULTS] if self._validator else []
        if errors:
            places = [".".join(map(str, one.instance_path)) for one in errors]
            raise ValueError(_faults(places, [one.message for one in errors])[:_MAX_TEXT])
        return value


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
    made = dict(schema)
    for name in _OF_SCHEMAS:
        if isinstance(made.get(name), dict):
            made[name] = {inner: strict(one) for inner, one in made[name].items()}
    for name in _IN_LISTS:
        if isinstance(made.get(name), list):
            made[name] = [strict(one) for one in made[name]]
    if "items" in made:
        made["items"] = strict(made["items"])
    if "properties" in made:
        made["additionalProperties"] = False
        made["required"] = list(made["properties"])
    return made


def json_part(text: str) -> str:
    """Return the JSON in a text: without a fence and prose around it. Nothing is repaired."""
    text = text.strip()
    if text.startswith(("{", "[")):
        return text
    begins = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    return text[min(begins) : end + 1] if begins and end > min(begins) else text


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
