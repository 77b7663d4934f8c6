"""Export a published result: copy it to the output of its operator."""

from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import copy_durably, storage
from dagster_dataops.hashing.file_digests import has_content


def exported_path(output: Path, name: str) -> Path:
    """Return the file to which a result is exported.

    Args:
        output: The argument of ``set_output``: a file if it ends in ``.jsonl``, else a folder.
        name: The name of the node, and of the file in a folder.
    """
    target = output.expanduser().absolute()
    return target if target.suffix == ".jsonl" else target / f"{name}.jsonl"


def export(dataset: JsonlDataset, output: Path, folder: NodeFolder) -> Path:
    """Copy a published result to its export and return the file.

    The export is replaced whole or not at all. An export with the same bytes is kept as it is. Call
    this under the lock of ``folder``, so that no other run replaces the result.

    Raises:
        StorageError: The target cannot be written.
    """
    target = exported_path(output, folder.name)
    with storage(target, "export the result to it"):
        if not has_content(target, dataset.size_bytes, dataset.fingerprint):
            copy_durably(dataset.path, target)
    return target
