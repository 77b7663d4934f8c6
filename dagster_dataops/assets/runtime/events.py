"""DataOpsEventIterator: the events of a step, with costly metadata on request."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import dagster as dg

from dagster_dataops.assets.metadata.columns.column_schema import whole_schema, with_texts
from dagster_dataops.assets.metadata.metadata_keys import COLUMN_SCHEMA, ROW_COUNT
from dagster_dataops.assets.metadata.result_metadata import with_metadata
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent, column_texts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.foundation.override import override

Event = TypeVar("Event")
Fetch = Callable[[list[JsonlDataset]], Mapping[str, Any]]


class DataOpsEventIterator(Iterator[Event], Generic[Event]):
    """Yields results and check results as operators finish; in an op, materializations.

    The ``fetch_*`` methods add metadata to every result. An error there never fails the step: it
    is logged, and the metadata is left out.

    Args:
        events: The events of `Work.run`.
        context: The context of the step.
        fetches: Functions that return metadata of a result.
    """

    def __init__(
        self, events: Iterator[StepEvent], context: StepContext, fetches: tuple[Fetch, ...] = ()
    ) -> None:
        self._events = events
        self._context = context
        self._fetches = fetches

    @override
    def __next__(self) -> Event:
        while True:
            event: Event | None = self._converted(next(self._events))
            if event is not None:
                return event

    def fetch_row_count(self) -> "DataOpsEventIterator[Event]":
        """Add ``dagster/row_count``.

        Operators count the records they write. Files from elsewhere are read to be counted.
        """
        return self._with(_row_count)

    def fetch_column_metadata(self) -> "DataOpsEventIterator[Event]":
        """Base ``dagster/column_schema`` on all records instead of a sample.

        This reads the whole result again.
        """
        return self._with(_column_schema)

    def _with(self, fetch: Fetch) -> "DataOpsEventIterator[Event]":
        return DataOpsEventIterator(self._events, self._context, (*self._fetches, fetch))

    def _converted(self, event: StepEvent) -> Any:
        """Return the event in the form for this step; ``None`` if the step does not yield it."""
        of_asset = isinstance(self._context, dg.AssetExecutionContext)
        if isinstance(event, dg.MaterializeResult):
            metadata = {**(event.metadata or {}), **self._fetched(event)}
            return with_metadata(event, metadata or None) if of_asset else _in_op(event, metadata)
        if of_asset:
            return event
        if not event.passed:
            text = f"check {event.check_name} failed: {event.description}"
            self._context.log.warning(text)
        return None

    def _fetched(self, event: dg.MaterializeResult[Any]) -> dict[str, Any]:
        value = event.value
        datasets = list(value.values()) if isinstance(value, Mapping) else [value]
        metadata: dict[str, Any] = {}
        for fetch in self._fetches:
            try:
                metadata |= fetch(
                    [dataset for dataset in datasets if isinstance(dataset, JsonlDataset)]
                )
            except Exception as error:  # noqa: BLE001 - the result is valid without the metadata
                name = event.asset_key.to_user_string() if event.asset_key else "the result"
                text = f"{name}: some metadata is left out ({type(error).__name__}: {error})"
                self._context.log.warning(text)
        if (schema := metadata.get(COLUMN_SCHEMA)) is not None:
            metadata[COLUMN_SCHEMA] = with_texts(
                schema, column_texts(self._context, event.asset_key)
            )
        return metadata


def _row_count(datasets: list[JsonlDataset]) -> Mapping[str, Any]:
    known = [data.rows if data.rows is not None else sum(1 for _ in data) for data in datasets]
    return {ROW_COUNT: sum(known)} if datasets else {}


def _column_schema(datasets: list[JsonlDataset]) -> Mapping[str, Any]:
    return {COLUMN_SCHEMA: whole_schema(datasets).table_schema()} if datasets else {}


def _in_op(event: dg.MaterializeResult[Any], metadata: Mapping[str, Any]) -> Any:
    version = event.data_version
    tags = {} if version is None else {"dagster/data_version": version.value}
    return dg.AssetMaterialization(
        asset_key=event.asset_key or dg.AssetKey([]), metadata=metadata, tags=tags
    )
