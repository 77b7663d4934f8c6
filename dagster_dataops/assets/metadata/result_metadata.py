"""Move the metadata of results of a step, so that Dagster stores it once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import dagster as dg


def written_once(
    context: dg.AssetExecutionContext, events: Iterable[Any], *, direct: bool = False
) -> Iterator[Any]:
    """Yield the events of a step, with metadata moved from the results to the context.

    Dagster stores metadata on a result twice: in the step's output and in the materialization.
    `add_asset_metadata` stores it once. In a direct call, such as in a unit test, it stays on the
    results, where the caller sees it.
    """
    for event in events:
        if direct or not isinstance(event, dg.MaterializeResult) or not event.metadata:
            yield event
            continue
        context.add_asset_metadata(event.metadata, asset_key=event.asset_key)
        yield with_metadata(event, None)


def with_metadata(
    event: dg.MaterializeResult[Any], metadata: Mapping[str, Any] | None
) -> dg.MaterializeResult[Any]:
    """Return a copy of a result with this metadata in place of its own."""
    return dg.MaterializeResult(
        asset_key=event.asset_key,
        metadata=metadata,
        check_results=event.check_results,
        data_version=event.data_version,
        tags=event.tags,
        value=event.value,
    )
