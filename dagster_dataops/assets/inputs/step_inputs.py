"""StepInputs: the inputs of one step as datasets, some of them temporary files."""

import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import dagster as dg

from dagster_dataops.assets.inputs.io_manager import records_of
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.runners.concat_inputs import gathered
from dagster_dataops.foundation.places.bucket import BucketFile

_PREFIX: Final = ".upstream-"  # cannot be an asset's folder, where a leading dot is escaped
_STALE_SECONDS: Final = 60.0  # the step of a younger folder may not have locked it yet


class StepInputs:
    """The inputs of one step in order; temporary files last as long as the ``with`` block.

    Records and DataFrames are written into ``folder``. Each of several ``inputs`` is joined to
    one dataset.

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
        """Add an input; each part is a handle, a location, records or a partition's DataFrame."""
        datasets = [self._dataset(part) for part in parts]
        if self._several and len(datasets) != 1:  # the executor joins the parts of a single input
            datasets = [gathered(datasets, self._scratch.place())]
        self.by_key.extend((key, dataset) for dataset in datasets)

    def _dataset(self, value: object) -> JsonlDataset:
        if isinstance(value, JsonlDataset):
            return value
        if isinstance(value, (Path, BucketFile)):
            return JsonlDataset.at(value)
        return write_records(
            self._scratch.place(), records_of(value), "upstream asset", scratch=True
        )


class StepScratch:
    """A temporary folder of one step inside the folder of its asset, created on first use.

    Every step has its own locked folder, because an orphaned step may still read its files while
    the next attempt writes. Folders of killed steps, which have lost their locks, are deleted by
    the next step that creates one.
    """

    def __init__(self, folder: NodeFolder, run: str) -> None:
        self._folder = folder
        self._run = run
        self._lock: FolderLock | None = None
        self._path = folder.path / f"{_PREFIX}{secrets.token_hex(8)}"
        self._files = 0

    def place(self) -> Path:
        """Return the path of the next file to write."""
        if self._lock is None:
            self._delete_stale()
            self._lock = FolderLock(self._path, self._run, 0.0)
        self._files += 1
        return self._path / f"{self._folder.name}_upstream_{self._files}.jsonl"

    def delete(self) -> None:
        """Delete the folder with all files."""
        if self._lock is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._lock.release()
            self._lock = None

    def _delete_stale(self) -> None:
        for path in self._folder.path.glob(f"{_PREFIX}*"):
            with suppress(OSError, DataOpsError):  # in use, or another step deletes it
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    lock = FolderLock(path, self._run, 0.0)
                    shutil.rmtree(path, ignore_errors=True)
                    lock.release()
