"""RoutedWriter: the drafts of the results of a node with named outputs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import xxhash

from dagster_dataops.checkpoints.folder.manifest import NodeFolder, OutputFacts, output_place
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.datasets.writer import JsonlWriter


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
        self._writers = {
            name: stack.enter_context(JsonlWriter(place.result))
            for name, place in folder.outputs.items()
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
            dataset = writer.finish()
            facts[name] = {
                **output_place(self._folder, self._folder.outputs[name]),
                "rows_out": writer.rows,
                "size_bytes": dataset.size_bytes,
                "modified_ns": draft_of(writer.path).stat().st_mtime_ns,
                "fingerprint": dataset.fingerprint or "",
                "parted": "",
                "compressed_bytes": writer.compressed_bytes,
            }
            digest.update(f"{name}={dataset.fingerprint}\n".encode())
            size += dataset.size_bytes
        self.outputs = facts
        return JsonlDataset(self._folder.result, size, self.rows, f"xxh3:{digest.hexdigest()}")
