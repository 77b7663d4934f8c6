"""The events of an external process: how it sends them, and how the asset's step yields them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.runtime.external.external_call import EXTRAS
from dagster_dataops.errors import ExternalRunError

_PART: Final = 3000  # characters of a message; in it, quotes and backslashes take two each
_VERSION: Final = "dagster/data_version"
_DAGSTERS: Final = "dagster/"
_OF_INPUTS: Final = "dagster/input_data_version/"


def messages_of(
    materializations: Iterable[dg.AssetMaterialization],
    evaluations: Iterable[dg.AssetCheckEvaluation],
) -> list[dict[str, Any]]:
    """Return events as the payloads of custom messages of Dagster Pipes.

    Dagster writes a message of more than 8 KB by several calls of the system, and its reader may
    find half of it. So the events are one text in parts.
    """
    values: list[Any] = [*materializations, *evaluations]
    text = json.dumps([dg.serialize_value(value) for value in values])
    parts = [text[at : at + _PART] for at in range(0, len(text), _PART)]
    return [
        {EXTRAS: {"part": number, "parts": len(parts), "text": part}}
        for number, part in enumerate(parts)
    ]


def reported_results(
    context: dg.AssetExecutionContext, invocation: Any
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    """Yield the results that an external process has sent; log the events of other assets.

    Raises:
        ExternalRunError: It sent none, or not all of them arrived.
    """
    events = _events_in(invocation.get_custom_messages())
    by_key: dict[dg.AssetKey, list[dg.AssetMaterialization]] = {}
    for event in events:
        if isinstance(event, dg.AssetMaterialization):
            by_key.setdefault(event.asset_key, []).append(event)
    for key, materializations in by_key.items():
        if key in context.selected_asset_keys:
            yield _result_of(context, materializations, invocation.metadata)
        else:
            for event in materializations:
                context.log_event(event)
    for event in events:
        if isinstance(event, dg.AssetCheckEvaluation):
            yield _check_of(event)


def _events_in(messages: Sequence[Any]) -> list[Any]:
    parts = [
        message[EXTRAS]
        for message in messages
        if isinstance(message, Mapping) and EXTRAS in message
    ]
    if not parts:
        reason = (
            "the external process ended well, but sent no results. Its command must be "
            "`python -m dagster_dataops run` with the definitions of the asset"
        )
        raise ExternalRunError(reason)
    if not all(isinstance(part, Mapping) for part in parts):
        reason = (
            "the external process has another version of dagster-dataops, whose messages this one "
            "does not read; install the same version there"
        )
        raise ExternalRunError(reason)
    if [part["part"] for part in parts] != list(range(parts[0]["parts"])):
        reason = f"{len(parts)} of the {parts[0]['parts']} parts of its results arrived; run again"
        raise ExternalRunError(reason)
    text = "".join(part["text"] for part in parts)
    return [dg.deserialize_value(value) for value in json.loads(text)]


def _result_of(
    context: dg.AssetExecutionContext,
    materializations: Sequence[dg.AssetMaterialization],
    added: Mapping[str, Any],
) -> dg.MaterializeResult[Any]:
    """Return the result of one asset; several partitions have metadata of their own."""
    first = materializations[0]
    tags = first.tags or {}
    single = len(materializations) == 1
    kept = {  # Dagster adds its own tags, except for versions of inputs
        name: value
        for name, value in tags.items()
        if name.startswith(_OF_INPUTS) or not name.startswith(_DAGSTERS)
    }
    for event in () if single else materializations:
        context.add_asset_metadata(event.metadata, first.asset_key, partition_key=event.partition)
    return dg.MaterializeResult(
        asset_key=first.asset_key,
        metadata={**(first.metadata if single else {}), **added},
        data_version=dg.DataVersion(tags[_VERSION]) if _VERSION in tags else None,
        tags=kept or None,
    )


def _check_of(event: dg.AssetCheckEvaluation) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=event.passed,
        asset_key=event.asset_key,
        check_name=event.check_name,
        metadata=event.metadata,
        severity=event.severity,
        description=event.description,
    )
