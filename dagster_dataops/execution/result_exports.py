"""Export published results. The caller holds the lock of the result's folder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.exporters.delivery import Delivery, Exported
from dagster_dataops.datasets.exporters.endings import exported_path, exporter_of
from dagster_dataops.datasets.exporters.exporter import ExportRecords
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.operators.options.declared_columns import columns_text


def exported(
    report: RunReport, output: Path, folder: NodeFolder, columns: Mapping[str, Any]
) -> RunReport:
    """Export the result of a run, or each of its results; return the report with the exports.

    An export that is current stays as it is. Several results are files of a folder that is named
    after the node.

    Args:
        report: The report of the run.
        output: The argument of ``set_output``.
        folder: The folder of the node.
        columns: The declared types of columns.

    Raises:
        ExportError: The format cannot hold a record.
        StorageError: The target cannot be written.
    """
    if not report.outputs:
        return _with_export(report, exported_path(output, folder.name), folder, columns)
    outputs = {
        name: _with_export(
            output_report, exported_path(output / folder.name, name), folder.outputs[name], columns
        )
        for name, output_report in report.outputs.items()
    }
    return replace(report, outputs=outputs)


def _with_export(
    report: RunReport, target: Path, folder: NodeFolder, columns: Mapping[str, Any]
) -> RunReport:
    exporter, dataset = exporter_of(target), report.dataset
    origin = f"{exporter.format} of {dataset.identity}{columns_text(columns)}"
    with Delivery(exporter, target, folder.receipt, origin) as delivery:
        delivered = delivery.current()
        if delivered is None:
            delivery.write(ExportRecords(dataset, columns))
            delivered = delivery.place()
    return replace(report, export=delivered)


def exported_by_node(report: RunReport, folder: NodeFolder) -> RunReport:
    """Return the report of an export operator with its export; a preview has none."""
    return replace(report, export=Exported.load(folder.receipt))
