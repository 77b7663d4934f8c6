"""Results that Dagster was not told of: their run died after it had published them.

Nobody has seen such a result, and the next run with the same operator, options, code and input
takes it instead of paying for it again. Dagster itself is asked, not a note of ours: its event and
a note could not be written at one instant, and a kill between the two would make the note wrong.
"""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

import dagster as dg

from dagster_dataops.assets.runtime.step_assets import asset_in
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder

_LATEST: Final = 20  # later ones are those that others report by hand: whoever makes one publishes
_REMEMBERED: Final = 256

_succeeded: Final[OrderedDict[str, None]] = OrderedDict()  # runs, which they are for good


def untold_in(context: StepContext, root: Path, folder: NodeFolder) -> Callable[[str], bool]:
    """Return what says of a run whether Dagster was never told of what it published in ``folder``.

    It costs one query of Dagster's database where that run succeeded, for all the steps of a
    process that ask for it, two where it did not.

    Args:
        context: Of the step.
        root: The folder of all results.
        folder: Of one of the step's assets, or of a partition; of any other nothing is untold.
    """

    def untold(run: str) -> bool:
        found = asset_in(context, root, folder)
        if found is None:
            return False
        if _all_told(context.instance, run):
            return False
        key, partition = found
        wanted = dg.AssetRecordsFilter(key, None if partition is None else [partition])
        records = context.instance.fetch_materializations(wanted, limit=_LATEST).records
        return all(record.run_id != run for record in records)

    return untold


def _all_told(instance: dg.DagsterInstance, run: str) -> bool:
    """Whether a run told all before it ended, or is another instance's."""
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
