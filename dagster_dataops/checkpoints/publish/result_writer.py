"""The writer of the draft of one result: in one file, or in parts."""

from contextlib import ExitStack
from typing import TypeAlias

from dagster_dataops.byte_ranges import FileState
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.parted_writer import PartedWriter
from dagster_dataops.datasets.writer import JsonlWriter

ResultWriter: TypeAlias = JsonlWriter | PartedWriter


def result_writer(folder: NodeFolder) -> ResultWriter:
    """Return a writer of the draft of the result in a folder."""
    if not folder.part_records:
        return JsonlWriter(folder.result)
    return PartedWriter(folder.result, folder.parts, folder.part_records)


def opened_writer(folder: NodeFolder, stack: ExitStack) -> ResultWriter:
    """Return a writer that ``stack`` closes; a draft that was not finished is then removed."""
    writer = result_writer(folder)
    stack.enter_context(writer)
    return writer


def facts_of_draft(writer: ResultWriter) -> tuple[int, str]:
    """Return modification time and version of a finished draft; no version of one file."""
    parted = writer.version if isinstance(writer, PartedWriter) else ""
    return FileState.at(draft_of(writer.path)).modified_ns, parted
