"""Observations: the progress of a running step on the asset page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import fenced, in_window
from dagster_dataops.assets.metadata.metadata_keys import PROGRESS, TRIED, WAITING
from dagster_dataops.assets.runtime.step_assets import assets_in
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.errors import RunWaitingError
from dagster_dataops.execution.progress import LogPace, ProgressState
from dagster_dataops.foundation.places.root import Root

if TYPE_CHECKING:
    from dagster_dataops.models.tried_records import TriedRecords

_MOST: Final = 20  # each is a row in the asset's events
_FIRST_SECONDS: Final = 5.0
_GROWTH: Final = 2.0  # intervals double: seven observations in ten minutes
_BAR_CHARACTERS: Final = 20


class Observations:
    """Asset observations of one run of one operator: at most 20, and none for a short run.

    The intervals grow, because the length of the run is unknown. The last of the 20 is reserved
    for the end of the run. It is made if there were others, so that the page shows the final state.

    They are of the asset whose files are in ``folder``; of several results of one operator, of the
    first one. An op has none.
    """

    def __init__(self, context: StepContext, root: Root, folder: NodeFolder) -> None:
        self._context = context
        self._root = root
        self._folder = folder
        self._pace = LogPace(_FIRST_SECONDS, _GROWTH, longest_seconds=float("inf"))
        self._reports = 0

    def due(self) -> bool:
        """Return whether an observation is due now; if so, schedule the next one."""
        due = self._reports < _MOST - 1 and self._pace.due()
        self._reports += due
        return due

    @property
    def begun(self) -> bool:
        """Whether an observation was due before."""
        return self._reports > 0

    def log(self, state: ProgressState, seconds: float) -> None:
        """Log an observation."""
        for key, partition in assets_in(self._context, self._root, self._folder)[:1]:
            metadata = progress_metadata(state, seconds)
            self._context.log_event(
                dg.AssetObservation(key, partition=partition, metadata=metadata)
            )


def progress_metadata(state: ProgressState, seconds: float) -> dict[str, Any]:
    """Return one line: a bar if the total is known, then counts, rate and time left.

    It is a text, because Dagster would plot numbers together with those of the results.
    """
    text = state.describe(seconds)
    if state.share is not None:
        done = min(int(state.share * _BAR_CHARACTERS), _BAR_CHARACTERS)
        text = f"{'█' * done}{'░' * (_BAR_CHARACTERS - done)} {text}"
    return {PROGRESS: text}


def observe_waiting(
    context: StepContext, specs: Sequence[dg.AssetSpec], waiting: RunWaitingError
) -> None:
    """Log that an operator waits, as an observation of its assets; nothing is materialized."""
    for spec in specs:
        shown = {WAITING: waiting.reason}
        context.log_event(
            dg.AssetObservation(asset_key=spec.key, description=str(waiting), metadata=shown)
        )
    context.log.info(str(waiting))


def observe_tried(
    context: StepContext, key: dg.AssetKey, tried: "TriedRecords", partition: str | None
) -> None:
    """Log an observation of an asset: which outcomes differ with the present code."""
    text = str(tried)
    shown = {TRIED: dg.MetadataValue.md(in_window(fenced(text)))}
    context.log_event(
        dg.AssetObservation(
            asset_key=key, description=text.partition("\n")[0], metadata=shown, partition=partition
        )
    )
    context.log.info(text)
