"""Export a published result: write it to the output of its operator, in the format of a suffix."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import copy_durably, storage
from dagster_dataops.hashing.file_digests import has_content

Exporter: TypeAlias = Callable[[JsonlDataset, Path], None]
"""Writes a result to a file, as a whole or not at all."""


def copy_result(dataset: JsonlDataset, target: Path) -> None:
    """Copy a result. A target that holds the same bytes already stays as it is."""
    if not has_content(target, dataset.size_bytes, dataset.fingerprint):
        copy_durably(dataset.path, target)


EXPORTERS: Final[Mapping[str, Exporter]] = {".jsonl": copy_result}


def names_file(output: Path | None) -> bool:
    """Whether the argument of ``set_output`` is a file; any other is a folder."""
    return output is not None and output.suffix in EXPORTERS


def exported_path(output: Path, name: str) -> Path:
    """Return the file that a result is exported to.

    Args:
        output: The argument of ``set_output``, a file or a folder.
        name: Of the node; the file in a folder is named after it.
    """
    target = output.expanduser().absolute()
    return target if names_file(target) else target / f"{name}.jsonl"


def export(dataset: JsonlDataset, output: Path, name: str) -> Path:
    """Write a published result to its export and return the file; arguments as `exported_path`.

    Call this under the lock of the result's folder, so that no other run replaces the result.

    Raises:
        StorageError: The target cannot be written.
    """
    target = exported_path(output, name)
    with storage(target, "export the result to it"):
        EXPORTERS[target.suffix](dataset, target)
    return target
