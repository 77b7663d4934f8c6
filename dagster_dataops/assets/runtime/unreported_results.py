"""Find results that were published without a Dagster event, because their run died in between.

The next run with the same operator, options, code and input reuses such a result. Dagster's
database is queried. A note in the folder would not be reliable: event and note cannot be written at
the same moment, so a kill between them would make the note wrong.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import dagster as dg

from dagster_dataops.assets.runtime.step_assets import assets_in
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.foundation.places.root import Root

_LATEST: Final = 20  # newer events than the searched one can only be manual reports
_REMEMBERED: Final = 256

_succeeded: Final[OrderedDict[str, None]] = OrderedDict()  # ids of successful runs


def unreported_in(context: StepContext, root: Root, folder: NodeFolder) -> Callable[[str], bool]:
    """Return a predicate of run ids: did the run publish in ``folder`` without a Dagster event?

    For a run that succeeded, a process queries the database once; for any other run, twice per
    call.

    The predicate is false for folders of no asset of the step.
    """

    def unreported(run: str) -> bool:
        assets = assets_in(context, root, folder)
        if not assets or _all_reported(context.instance, run):
            return False
        return any(not _is_reported(context.instance, run, *asset) for asset in assets)

    return unreported


def _is_reported(
    instance: dg.DagsterInstance, run: str, key: dg.AssetKey, partition: str | None
) -> bool:
    wanted = dg.AssetRecordsFilter(key, None if partition is None else [partition])
    records = instance.fetch_materializations(wanted, limit=_LATEST).records
    return any(record.run_id == run for record in records)


def _all_reported(instance: dg.DagsterInstance, run: str) -> bool:
    """Return whether a run reported all its results, or is unknown to this instance."""
    if run not in _succeeded:
        known = instance.get_run_by_id(run)
        if known is None:
            return True
        if known.status is not dg.DagsterRunStatus.SUCCESS:
            return False
        _succeeded[run] = None
        if len(_succeeded) > _REMEMBERED:
            _succeeded.popitem(last=False)
    return True
