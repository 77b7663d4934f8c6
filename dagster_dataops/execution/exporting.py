"""Export a published result: copy it to the output of its operator."""

from dataclasses import replace
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import copy_durably, storage
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.hashing.file_digests import has_content


def exported_path(output: Path, name: str) -> Path:
    """Return the file that a result is exported to.

    Args:
        output: The argument of ``set_output``: a file if it ends in ``.jsonl``, else a folder.
        name: Of the node; the file in a folder is named after it.
    """
    target = output.expanduser().absolute()
    return target if target.suffix == ".jsonl" else target / f"{name}.jsonl"


def export_all(report: RunReport, output: Path, folder: NodeFolder) -> RunReport:
    """Export the result of a run, or each of its results; return the report with the files.

    Several results are files of a folder named after the node. Errors as `export`.
    """
    if not report.outputs:
        return replace(report, exported=export(report.dataset, output, folder.name))
    outputs = {
        name: replace(one, exported=export(one.dataset, output / folder.name, name))
        for name, one in report.outputs.items()
    }
    return replace(report, outputs=outputs)


def export(dataset: JsonlDataset, output: Path, name: str) -> Path:
    """Copy a published result to its export, as of `exported_path`, and return the file.

    The export is replaced whole or not at all. An export that holds the same bytes already stays as
    it is. Call this under the lock of the node's folder, so that no other run replaces the result.

    Raises:
        StorageError: The target cannot be written.
    """
    target = exported_path(output, name)
    with storage(target, "export the result to it"):
        if not has_content(target, dataset.size_bytes, dataset.fingerprint):
            copy_durably(dataset.path, target)
    return target
