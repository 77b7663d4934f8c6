"""check_together: refuse results of one node that are of different runs of it.

The results of a node with named outputs are put in place one after the other. After a crash in
between, or during the publication, some are new and others old. The next run of the node puts the
others in place.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import BucketFile


def check_together(inputs: Sequence[JsonlDataset]) -> None:
    """Refuse inputs that are outputs of one node but of different runs of it.

    Raises:
        InputError: Two of the inputs are of different runs.
    """
    known: dict[str, tuple[str, Manifest]] = {}
    for location in (dataset.location for dataset in inputs) if len(inputs) > 1 else ():
        if isinstance(location, BucketFile):
            continue
        manifest = Manifest.load(location.with_name(f"{location.name}.json"))
        if manifest is None or not manifest.part_of:
            continue
        node = os.path.realpath(Path(location).parent / manifest.part_of)
        other, first = known.setdefault(node, (str(location), manifest))
        if (manifest.attempts, manifest.made_from) != (first.attempts, first.made_from):
            reason = (
                f"it is of run {manifest.attempts[-1]}, and {other} of run {first.attempts[-1]}: "
                "their publication was cut short. Run their node again, which finishes it"
            )
            raise InputError(str(location), reason)
