"""The fingerprint of a stream, by which a state is matched to its stream."""

from collections.abc import Iterator
from typing import Any

from dagster_dataops.hashing.code import code_digest
from dagster_dataops.hashing.values import digest
from dagster_dataops.streams.core.item_failures import OnError
from dagster_dataops.streams.core.stage import Stage


def fingerprint(stage: Stage, on_error: OnError) -> list[dict[str, str]]:
    """Return the name of each stage with digests of its options, its code and its data.

    Raises:
        StreamSourceError: A source cannot be read.
    """
    counted = {"stage": "stream", "on_error": "raise" if on_error == "raise" else "skip"}
    return [*map(_fingerprint_parts, _counting(stage)), counted]


def definition(stage: Stage) -> dict[str, str]:
    """Return digests of the options and of the code of all stages, without reading any data."""
    parts = [_definition_parts(one) for one in _counting(stage)]
    options = [[one["stage"], one["options"]] for one in parts]
    return {"options": digest(options), "code": digest([one.get("code") for one in parts])}


def _counting(stage: Stage) -> Iterator[Stage]:
    """Yield the stages that decide about the items."""
    return (one for one in stage.ordered() if not one.transparent)


def _fingerprint_parts(stage: Stage) -> dict[str, str]:
    parts = _definition_parts(stage)
    identity = stage.identity()
    if identity is not None:
        parts["data"] = digest(identity)
    return parts


def _definition_parts(stage: Stage) -> dict[str, str]:
    options: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    for name, value in stage.options().items():
        (functions if _is_code(value) else options)[name] = value
    parts = {"stage": stage.name, "options": digest(options)}
    if functions:
        parts["code"] = digest(functions, code_digest)
    return parts


def _is_code(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_code, value))
    return callable(value) and not isinstance(value, type)
