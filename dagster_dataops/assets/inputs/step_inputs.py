"""StepInputs: the inputs of a step as datasets, whatever IO managers made of their assets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import dagster as dg

from dagster_dataops.assets.inputs.io_manager import records_of
from dagster_dataops.assets.inputs.step_scratch import StepScratch
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.execution.runners.concat_inputs import gathered


class StepInputs:
    """The inputs of one step, in order, for as long as the ``with`` block lasts.

    Args:
        folder: Of the step's asset; what is neither handle nor file is written there.
        inputs: How many there are; of several, each must be one dataset.
        run: Whose step it is.

    Attributes:
        by_key: Every dataset with the key of its asset.
    """

    def __init__(self, folder: NodeFolder, inputs: int, run: str) -> None:
        self.by_key: list[tuple[dg.AssetKey, JsonlDataset]] = []
        self._several = inputs > 1
        self._scratch = StepScratch(folder, run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete what was written for the step alone."""
        self._scratch.delete()

    @property
    def datasets(self) -> list[JsonlDataset]:
        """The datasets alone."""
        return [dataset for _, dataset in self.by_key]

    def add(self, key: dg.AssetKey, parts: Sequence[object]) -> None:
        """Add an input: a handle, a path, records or a DataFrame, one for each partition of it."""
        datasets = [self._dataset(part) for part in parts]
        if self._several and len(datasets) != 1:  # else the executor joins them
            datasets = [gathered(datasets, self._scratch.place())]
        self.by_key.extend((key, dataset) for dataset in datasets)

    def _dataset(self, value: object) -> JsonlDataset:
        if isinstance(value, JsonlDataset):
            return value
        if isinstance(value, Path):
            return JsonlDataset.of_file(value)
        return write_records(self._scratch.place(), records_of(value), "upstream asset")
