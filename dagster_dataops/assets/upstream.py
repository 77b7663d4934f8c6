"""Upstream: the inputs of a step as datasets, whatever IO managers made of their assets."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.io_manager import records_of
from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writing import write_records


class Upstream:
    """The inputs of one step, in order.

    Args:
        folder: Of the step's asset; what is neither handle nor file is written there.

    Attributes:
        by_key: Every dataset with the key of its asset.
    """

    def __init__(self, folder: NodeFolder) -> None:
        self.by_key: list[tuple[dg.AssetKey, JsonlDataset]] = []
        self._folder = folder
        self._spilled: list[Path] = []

    @property
    def datasets(self) -> list[JsonlDataset]:
        """The datasets alone."""
        return [dataset for _, dataset in self.by_key]

    def add(self, key: dg.AssetKey, value: object) -> None:
        """Add a handle, a path, records or a DataFrame; several partitions one after another."""
        self.by_key.extend((key, self._dataset(part)) for part in _partitions(value))

    def _dataset(self, value: object) -> JsonlDataset:
        if isinstance(value, JsonlDataset):
            return value
        if isinstance(value, Path):
            return JsonlDataset.of_file(value)
        number = len(self._spilled) + 1
        self._spilled.append(self._folder.path / f"{self._folder.name}_upstream_{number}.jsonl")
        return write_records(self._spilled[-1], records_of(value), "upstream asset")

    def clean_up(self) -> None:
        """Delete what was written for the step alone."""
        for path in self._spilled:
            path.unlink(missing_ok=True)


def _partitions(value: object) -> Iterator[object]:
    if isinstance(value, Mapping) and all(isinstance(v, JsonlDataset) for v in value.values()):
        yield from value.values()
    else:
        yield value
