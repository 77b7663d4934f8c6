"""Observations: how far a step is, as the asset page shows it while it runs."""

from pathlib import Path
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.assets.runtime.step_assets import asset_in
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.execution.progress import LogPace, ProgressState

_MOST: Final = 20  # each is a row among the asset's events
_FIRST_SECONDS: Final = 5.0
_GROWTH: Final = 2.0  # seven in ten minutes, each at about twice the age of the one before
_BAR_CHARACTERS: Final = 20


class Observations:
    """Asset observations of one run of one operator: none of a short one, at most 20 of any.

    The pauses between them grow, since nobody knows how long a run takes. The last is kept for
    its end, and made if there were others, so that what is shown ends where the run did.

    Args:
        context: Of the step.
        key: The asset.
        partition: Its partition, if it has any.
    """

    def __init__(
        self, context: dg.AssetExecutionContext, key: dg.AssetKey, partition: str | None
    ) -> None:
        self._context = context
        self._key = key
        self._partition = partition
        self._pace = LogPace(_FIRST_SECONDS, _GROWTH, longest_seconds=float("inf"))
        self._made = 0

    def due(self) -> bool:
        """Whether one is due now; if so, the next one is scheduled."""
        due = self._made < _MOST - 1 and self._pace.due()
        self._made += due
        return due

    @property
    def begun(self) -> bool:
        """Whether there was one."""
        return self._made > 0

    def log(self, state: ProgressState, seconds: float) -> None:
        """Log one.

        Args:
            state: How far the run is.
            seconds: How long this attempt has been running.
        """
        self._context.log_event(
            dg.AssetObservation(
                self._key, partition=self._partition, metadata=progress_metadata(state, seconds)
            )
        )


def progress_metadata(state: ProgressState, seconds: float) -> dict[str, Any]:
    """Return the one line to show: a bar where the total is known, then counts, rate, time left.

    It is a text: Dagster plots numbers, beside those of the results.
    """
    text = state.describe(seconds)
    if state.share is not None:
        done = min(int(state.share * _BAR_CHARACTERS), _BAR_CHARACTERS)
        text = f"{'█' * done}{'░' * (_BAR_CHARACTERS - done)} {text}"
    return {f"{METADATA_PREFIX}/progress": text}


def observations_of(context: StepContext, root: Path, folder: NodeFolder) -> Observations | None:
    """Return those of the asset, among the step's, whose files are in ``folder``.

    Args:
        context: Of the step.
        root: The folder of all results.
        folder: Where the operator is run; one that is no asset's, such as an op's, has none.
    """
    found = asset_in(context, root, folder)
    if found is None or not isinstance(context, dg.AssetExecutionContext):
        return None
    return Observations(context, *found)
