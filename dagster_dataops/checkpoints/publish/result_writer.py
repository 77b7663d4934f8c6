"""Writers of the draft of a result: in one file, in parts, or in a file for each named output."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TypeAlias

import xxhash

from dagster_dataops.byte_ranges import FileState
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, OutputFacts, place_of
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.lines import split_lines
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


class RoutedWriter:
    """Writes the results of a node with named outputs; one after the other, in input order.

    Args:
        folder: Of the node, with the folders of its outputs.
        stack: Closes the files at its end. Drafts that were not finished are then removed.

    Attributes:
        rows: Number of lines of all outputs.
        outputs: Facts about the outputs by name, for the manifest; empty before `finish`.
    """

    def __init__(self, folder: NodeFolder, stack: ExitStack) -> None:
        self.rows = 0
        self.outputs: Mapping[str, OutputFacts] = {}
        self._folder = folder
        self._writers: dict[str, ResultWriter] = {
            name: opened_writer(place, stack) for name, place in folder.outputs.items()
        }

    def write(self, lines: bytes, outputs: Sequence[int]) -> None:
        """Append lines to the files of their outputs, which the dispositions of records name.

        Args:
            lines: The lines, in the order in which they were emitted.
            outputs: The index of the output of each line.
        """
        parts: list[list[bytes]] = [[] for _ in self._writers]
        for line, output in zip(split_lines(lines), outputs, strict=True):
            parts[output].append(line)
        for part, writer in zip(parts, self._writers.values(), strict=True):
            if part:
                writer.write(b"".join(part), len(part))
        self.rows += len(outputs)

    def finish(self) -> JsonlDataset:
        """Make the drafts durable.

        Returns:
            One handle for all outputs: rows and bytes of all of them, and a digest of
            their digests. There is no file at its path.
        """
        facts: dict[str, OutputFacts] = {}
        digest = xxhash.xxh3_128()
        size = 0
        for name, writer in self._writers.items():
            made = writer.finish()
            modified_ns, parted = facts_of_draft(writer)
            facts[name] = {
                **place_of(self._folder, self._folder.outputs[name]),
                "rows_out": writer.rows,
                "size_bytes": made.size_bytes,
                "modified_ns": modified_ns,
                "fingerprint": made.fingerprint or "",
                "parted": parted,
            }
            digest.update(f"{name}={made.fingerprint}\n".encode())
            size += made.size_bytes
        self.outputs = facts
        return JsonlDataset(self._folder.result, size, self.rows, f"xxh3:{digest.hexdigest()}")
