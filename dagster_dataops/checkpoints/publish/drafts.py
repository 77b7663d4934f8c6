"""Drafts: a result and its error file, complete on disk but not yet in place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final

import xxhash

from dagster_dataops.checkpoints.folder.manifest import NodeFolder, OutputFacts, output_place
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.publish.record_summary import RecordSummary
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of, storage
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.foundation.frozen import frozen


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


_NO_FACTS: Final = {"dataset", "records", "dropped", "summary"}


@frozen()
class Drafts:
    """The complete drafts of a result and its error file.

    Attributes:
        dataset: The handle that the result will have in place; for several outputs, one handle for
            all of them.
        modified_ns: Modification time of its file, in nanoseconds; 0 for several outputs.
        records: Number of input records.
        dropped: Number of input records that emitted nothing and did not fail.
        failed: Number of input records that failed; they are in the draft of the error file.
        outcomes: Whether the outcome of every record can be found by its input.
        mapped: Whether there is a draft of the map from input records to result lines.
        summary: The numbers of records by outcome.
        seeds: Seeds that a stream has drawn, by the paths of its stages.
        outputs: Facts about each named output, as in `Manifest.outputs`.
        artefact: The version of an artefact that the result lists; empty for other results.
        combined: How a stream combines its inputs, as in `Manifest.combined`.
        leaves: The datasets that a stream mixes, as in `Manifest.leaves`.
        compressed_bytes: As in `Manifest.compressed_bytes`.
    """

    dataset: JsonlDataset
    modified_ns: int
    records: int
    dropped: int = 0
    failed: int = 0
    outcomes: bool = False
    mapped: bool = False
    summary: RecordSummary = field(default_factory=RecordSummary)
    seeds: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, OutputFacts] = field(default_factory=dict)
    artefact: str = ""
    combined: dict[str, Any] = field(default_factory=dict)
    leaves: list[dict[str, Any]] = field(default_factory=list)
    compressed_bytes: int = 0

    def facts(self) -> dict[str, Any]:
        """Return the facts that a manifest holds under the same names."""
        every = {fact.name: getattr(self, fact.name) for fact in fields(self)}
        return {name: every[name] for name in every.keys() - _NO_FACTS} | vars(self.summary)


class DraftWriter:
    """Writes a result and its error file as drafts; made by `drafting`.

    Args:
        folder: The folder of the node.
        stack: Closes the files at its end. Drafts that were not finished are then removed.
        writer: As `Claim.writer`, for a node with one result.
    """

    def __init__(
        self, folder: NodeFolder, stack: ExitStack, writer: Callable[[Path], JsonlWriter]
    ) -> None:
        self._results = (
            RoutedWriter(folder, stack)
            if folder.outputs
            else stack.enter_context(writer(folder.result))
        )
        self.errors = stack.enter_context(JsonlWriter(folder.errors))

    @property
    def results(self) -> JsonlWriter:
        """Writes the lines of an operator with one result.

        Raises:
            TypeError: The operator has several.
        """
        if isinstance(self._results, RoutedWriter):
            msg = "an operator with several results writes lines with their notes"
            raise TypeError(msg)
        return self._results

    def write(self, lines: bytes, rows: int, notes: SpanNotes | None = None) -> None:
        """Append the lines of a span, each to the file of its output if there are several."""
        if isinstance(self._results, RoutedWriter):
            self._results.write(lines, notes.outputs() if notes else [])
        else:
            self._results.write(lines, rows)

    def finish(
        self, *, records: int, failed: int, dropped: int | None = None, outcomes: bool = False
    ) -> Drafts:
        """Make both drafts durable.

        An empty error file has no draft, because its sync would take as long as that of a small
        result.

        Args:
            records: Number of input records.
            failed: Number of input records that failed.
            dropped: Number of input records that emitted nothing and did not fail; ``None`` counts
                the records that are missing from the result.
            outcomes: Whether the outcome of every record can be found by its input.
        """
        dataset = self._results.finish()
        outputs = dict(self._results.outputs) if isinstance(self._results, RoutedWriter) else {}
        modified_ns = 0 if outputs else self.results.modified_ns
        compressed_bytes = 0 if outputs else self.results.compressed_bytes
        if self.errors.rows:
            self.errors.finish()
        missing = max(0, records - failed - self._results.rows)
        return Drafts(
            dataset=dataset,
            modified_ns=modified_ns,
            records=records,
            dropped=missing if dropped is None else dropped,
            failed=failed,
            outcomes=outcomes,
            outputs=outputs,
            compressed_bytes=compressed_bytes,
        )


@contextmanager
def drafting(
    folder: NodeFolder, action: str, writer: Callable[[Path], JsonlWriter] = JsonlWriter
) -> Iterator[DraftWriter]:
    """Yield the writer of the drafts of a result. Without `DraftWriter.finish` none are left.

    Args:
        folder: The folder of the node.
        action: The action to name in storage errors, such as "compose the result".
        writer: As `Claim.writer`.
    """
    with storage(folder.path, action), ExitStack() as stack:
        yield DraftWriter(folder, stack, writer)
