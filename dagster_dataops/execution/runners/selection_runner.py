"""SelectionRunner: journal the sketches as records, then copy the lines of records to keep.

A checkpoint holds the sketches, so that a kill loses none of them. ``keep`` reads them in one
thread, in input order. Lines that this package wrote are copied as bytes; other lines are encoded
like results. An operator with ``change`` makes new lines of the records for which ``keep`` yields
no bool.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from typing_extensions import override

from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal
from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.checkpoints.publish.record_summary import (
    DropExamples,
    RecordSummary,
    drops_in,
)
from dagster_dataops.datasets.durable_files import make_folder
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.errors import DataOpsError, DatasetOperatorError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.records.record_failures import text_and_traceback
from dagster_dataops.execution.runners.kept_lines import KeptLines, placed_lines
from dagster_dataops.execution.runners.record_runner import RecordRunner
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.operators.bound_methods import SKETCH, change_function, keep_function
from dagster_dataops.operators.outcomes.column_watch import missing_counts
from dagster_dataops.operators.outcomes.record_context import shown_counts

if TYPE_CHECKING:
    from array import array

    from dagster_dataops.operators.outcomes.dispositions import Disposition

_BLOCK_BYTES: Final = 256 << 10  # bytes; small enough for the processor's cache
_SKETCH_BYTES: Final = 256 << 10  # bytes decoded at a time; objects take about ten times that


class SelectionRunner(RecordRunner):
    """Runs selection operators."""

    @override
    def compose(self, attempt: NodeAttempt, sink: CheckpointSink) -> Drafts | list[int]:
        traced = attempt.settings.trace
        select = _Selection(sink)
        table = sink.checkpoint.table
        drafts = compose(
            attempt.folder,
            sink.checkpoint,
            sink.work.dataset,
            traced=traced,
            select=select,
            writer=attempt.lock.writer,
        )
        if not isinstance(drafts, Drafts):
            return drafts
        summary = RecordSummary(
            counts=shown_counts(table.counts) | missing_counts(table.counts),
            drops=drops_in(select.tally),
            drop_examples=select.examples,
        )
        return replace(drafts, summary=summary)


class _Selection:
    """Writes the lines of kept records.

    Attributes:
        tally: The number of records by disposition, of an operator with ``change``.
        examples: The first records that ``change`` dropped for each reason.
    """

    def __init__(self, sink: CheckpointSink) -> None:
        self._sink = sink
        self.tick = sink.tick
        self.tally: Counter[Disposition] = Counter()
        self.examples: dict[str, list[dict[str, Any]]] = {}

    def write(self, results: JsonlWriter, failed: "array[int]", kept: KeptJournal | None) -> int:
        """Write the lines of kept records, and which ones these are; return how many were dropped.

        Raises:
            DatasetOperatorError: ``keep`` failed, or did not yield one bool per sketch.
            InputError: The input changed in the meantime.
            RunStoppedError: A stop was requested.
        """
        sink, dropped = self._sink, 0
        with (
            closing(SegmentReader(sink.checkpoint.segments)) as reader,
            _scratch(sink.checkpoint.folder / "scratch") as scratch,
            opened(sink.work.dataset.location) as source,
        ):
            sketches = chain.from_iterable(_sketches(sink, reader))
            verdicts = _Verdicts(sink, sketches, scratch)
            ours = sink.work.dataset.canonical
            lines = KeptLines(verdicts.change, ours=ours, call=verdicts.call)
            examples = DropExamples(source)
            for block in lines.blocks(source, sink.work.content, failed, verdicts.take):
                sink.tick()
                dropped += block.span.dropped
                if block.output:
                    results.write(block.output, block.span.emitted)
                if kept is not None:
                    kept.add(block.span, block.output, (), block.notes)
                if block.notes is not None and verdicts.change is not None:
                    self.tally.update(block.notes.tally())
                    examples.add(block.notes, placed_lines(source, block.span, failed))
            verdicts.finish()
            self.examples = examples.found
        sink.check_input_unchanged()
        return dropped


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, deleted afterwards; files that a killed run left are deleted first."""
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sketches(sink: CheckpointSink, reader: SegmentReader) -> Iterator[Iterator[Any]]:
    """Yield the settled sketches in input order, some hundred at a time."""
    for span, segment, offset in sink.checkpoint.table.ordered():
        output = reader.read(segment, offset, span.output_bytes)
        at = 0
        while at < len(output):
            end = output.find(b"\n", at + _SKETCH_BYTES) + 1 or len(output)
            rows = orjson.loads(b"[" + output[at : end - 1].replace(b"\n", b",") + b"]")
            sink.tick()
            yield map(itemgetter(SKETCH), rows)
            at = end


class _Verdicts:
    """Checks the verdicts that ``keep`` yields.

    Attributes:
        change: ``change`` of the operator; ``None`` if all verdicts are bools.
    """

    def __init__(self, sink: CheckpointSink, sketches: Iterator[Any], scratch: Path) -> None:
        self._sink = sink
        self.change = change_function(sink.attempt.operator)
        returned = self.call(keep_function(sink.attempt.operator, scratch), sketches)
        if not isinstance(returned, Iterable):
            kind = type(returned).__name__
            raise self._error(f"keep returned a {kind}; yield True or False for each sketch")
        self._verdicts: Iterator[object] = self.call(iter, returned)

    def take(self, count: int) -> list[Any]:
        """Return the next ``count`` verdicts."""
        verdicts: list[Any] = self.call(list, islice(self._verdicts, count))
        if len(verdicts) < count:
            raise self._error("keep yielded fewer verdicts than it was given sketches")
        others = set(map(type, verdicts)) - {bool}
        if others and self.change is None:
            kind = min(other.__name__ for other in others)
            raise self._error(f"keep yielded a {kind}; yield True or False for each sketch")
        return verdicts

    def finish(self) -> None:
        """Check that ``keep`` yields no more verdicts than there are sketches."""
        if self.call(list, islice(self._verdicts, 1)):
            raise self._error("keep yielded more verdicts than it was given sketches")

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call code of the operator; its exceptions become errors that name the operator."""
        try:
            return function(*arguments)
        except DataOpsError:
            raise
        except self._sink.attempt.interrupts:
            raise
        except BaseException as error:
            raise DatasetOperatorError(
                self._sink.attempt.name, *text_and_traceback(error, self._sink.attempt.operator)
            ) from error

    def _error(self, reason: str) -> DatasetOperatorError:
        return DatasetOperatorError(self._sink.attempt.name, reason, "")
