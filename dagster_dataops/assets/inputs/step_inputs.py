"""StepInputs: the inputs of one step as datasets."""

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
    """The inputs of one step in order; temporary files last as long as the ``with`` block.

    Args:
        folder: The folder of the step's asset; records and DataFrames are written there.
        inputs: The number of inputs; if there are several, each is joined to one dataset.
        run: The id of the run.

    Attributes:
        by_key: Every dataset with the key of its asset, in order.
    """

    def __init__(self, folder: NodeFolder, inputs: int, run: str) -> None:
        self.by_key: list[tuple[dg.AssetKey, JsonlDataset]] = []
        self._several = inputs > 1
        self._scratch = StepScratch(folder, run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary files of the step."""
        self._scratch.delete()

    @property
    def datasets(self) -> list[JsonlDataset]:
        """The datasets without their keys."""
        return [dataset for _, dataset in self.by_key]

    def add(self, key: dg.AssetKey, parts: Sequence[object]) -> None:
        """Add an input; each part is a handle, a path, records or a DataFrame of a partition."""
        datasets = [self._dataset(part) for part in parts]
        if self._several and len(datasets) != 1:  # the executor joins the parts of a single input
            datasets = [gathered(datasets, self._scratch.place())]
        self.by_key.extend((key, dataset) for dataset in datasets)

    def _dataset(self, value: object) -> JsonlDataset:
        if isinstance(value, JsonlDataset):
            return value
        if isinstance(value, Path):
            return JsonlDataset.of_file(value)
        return write_records(self._scratch.place(), records_of(value), "upstream asset")
