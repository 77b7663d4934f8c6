"""RoutedWriter: write tagged result lines as drafts, a file for each named output.

The tags themselves are written too, a byte a line in the order of the lines: the routes. With them
the files of the outputs can be merged again, as a retry of failed records needs.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import xxhash

from dagster_dataops.checkpoints.folder.manifest import NodeFolder, OutputFacts, place_of
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.operators.named_outputs import tags_of


class RoutedWriter:
    """Writes the results of a node with named outputs; used like a `JsonlWriter`.

    Args:
        folder: Of the node, with the folders of its outputs.

    Attributes:
        rows: Number of lines of all outputs.
        outputs: Facts about the outputs by name, for the manifest; empty before `finish`.
    """

    def __init__(self, folder: NodeFolder) -> None:
        self.rows = 0
        self.outputs: Mapping[str, OutputFacts] = {}
        self._folder = folder
        with ExitStack() as stack:
            self._routes = stack.enter_context(JsonlWriter(folder.routes))
            self._writers = {
                name: stack.enter_context(JsonlWriter(place.result))
                for name, place in folder.outputs.items()
            }
            self._stack = stack.pop_all()
        tags = tags_of(tuple(folder.outputs))
        self._by_tag = [(tags[name][0], writer) for name, writer in self._writers.items()]

    def write(self, lines: bytes, rows: int = 1) -> None:
        """Append tagged lines, ``rows`` of them, to the files of their outputs."""
        parts: dict[int, list[bytes]] = {tag: [] for tag, _ in self._by_tag}
        tagged = split_lines(lines)
        for line in tagged:
            parts[line[0]].append(line[1:])
        for tag, writer in self._by_tag:
            if parts[tag]:
                writer.write(b"".join(parts[tag]), len(parts[tag]))
        self._routes.write(bytes([line[0] for line in tagged]), rows)
        self.rows += rows

    def finish(self) -> JsonlDataset:
        """Make the drafts durable.

        Returns:
            A handle that stands for all outputs: rows and bytes of all of them, and a digest of
            their digests. There is no file at its path.
        """
        facts: dict[str, OutputFacts] = {}
        digest = xxhash.xxh3_128()
        size = 0
        for name, writer in self._writers.items():
            made = writer.finish()
            facts[name] = {
                **place_of(self._folder, self._folder.outputs[name]),
                "rows_out": writer.rows,
                "size_bytes": made.size_bytes,
                "modified_ns": draft_of(made.path).stat().st_mtime_ns,
                "fingerprint": made.fingerprint or "",
            }
            digest.update(f"{name}={made.fingerprint}\n".encode())
            size += made.size_bytes
        digest.update((self._routes.finish().fingerprint or "").encode())
        self.outputs = facts
        return JsonlDataset(self._folder.result, size, self.rows, f"xxh3:{digest.hexdigest()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        return self._stack.__exit__(kind, error, traceback)
