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
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from dagster_dataops.execution.runners.kept_lines import KeptLines, ResultBlock, placed_lines
from dagster_dataops.execution.runners.record_runner import RecordRunner
from dagster_dataops.execution.runners.selection_stages import (
    decoded_sketches,
    partitioning_of,
    selection_stages,
)
from dagster_dataops.execution.runners.stages import Stages, repaired
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import Readable
from dagster_dataops.operators.bound_methods import CHANGE, change_function, keep_function
from dagster_dataops.operators.outcomes.column_watch import missing_counts
from dagster_dataops.operators.outcomes.record_context import shown_counts

if TYPE_CHECKING:
    from array import array

    from dagster_dataops.operators.outcomes.dispositions import Disposition

_BLOCK_BYTES: Final = 256 << 10  # bytes; small enough for the processor's cache


class SelectionRunner(RecordRunner):
    """Runs selection operators."""

    @override
    def run(self, attempt: NodeAttempt) -> Drafts:
        if attempt.context.cluster is not None and partitioning_of(attempt.operator) is not None:
            from dagster_dataops.execution.leases.staying_agents import keep_agents

            keep_agents(attempt)
        return super().run(attempt)

    @override
    def compose(self, attempt: NodeAttempt, sink: CheckpointSink) -> Drafts | list[int]:
        return repaired(attempt, Stages.of(sink).folder, partial(self._compose, attempt, sink))

    def _compose(self, attempt: NodeAttempt, sink: CheckpointSink) -> Drafts | list[int]:
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
        """Write the lines of kept records, and which these are; return how many were dropped."""
        dropped, changes = 0, hasattr(self._sink.attempt.operator, CHANGE)
        with opened(self._sink.work.dataset.location) as source:
            examples = DropExamples(source)
            for block in self._blocks(source, failed):
                self._sink.tick()
                dropped += block.span.dropped
                if block.output:
                    results.write(block.output, block.span.emitted)
                if kept is not None:
                    kept.add(block.span, block.output, (), block.notes)
                if block.notes is not None and changes:
                    self.tally.update(block.notes.tally())
                    examples.add(block.notes, placed_lines(source, block.span, failed))
            self.examples = examples.found
        self._sink.check_input_unchanged()
        return dropped

    def _blocks(self, source: Readable, failed: "array[int]") -> Iterator[ResultBlock]:
        """Yield the blocks of the input with their results."""
        stages = selection_stages(self._sink, failed)
        if stages is None:
            Stages.of(self._sink).end()
            yield from self._by_keep(source, failed)
            return
        stages.decide()
        if stages.makes_lines:
            yield from stages.blocks()
        else:
            yield from self._lines(source, failed, _Verdicts(self._sink, stages.verdicts))

    def _by_keep(self, source: Readable, failed: "array[int]") -> Iterator[ResultBlock]:
        checkpoint, operator = self._sink.checkpoint, self._sink.attempt.operator
        with (
            closing(SegmentReader(checkpoint.segments)) as reader,
            _scratch(checkpoint.folder / "scratch") as scratch,
        ):
            sketches = chain.from_iterable(_sketches(self._sink, reader))
            keep = partial(keep_function(operator, scratch), sketches)
            yield from self._lines(source, failed, _Verdicts(self._sink, keep))

    def _lines(
        self, source: Readable, failed: "array[int]", verdicts: "_Verdicts"
    ) -> Iterator[ResultBlock]:
        work = self._sink.work
        lines = KeptLines(verdicts.change, ours=work.dataset.canonical, call=verdicts.call)
        yield from lines.blocks(source, work.content, failed, verdicts.take)
        verdicts.finish()


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, deleted afterwards; files that a killed run left are deleted first."""
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sketches(sink: CheckpointSink, reader: SegmentReader) -> Iterator[list[Any]]:
    """Yield the settled sketches in input order, some hundred at a time."""
    for span, segment, offset in sink.checkpoint.table.ordered():
        output = reader.read(segment, offset, span.output_bytes)
        for sketches in decoded_sketches(output):
            sink.tick()
            yield sketches


class _Verdicts:
    """Checks the verdicts that ``keep`` yields.

    Attributes:
        change: ``change`` of the operator; ``None`` if all verdicts are bools.
    """

    def __init__(self, sink: CheckpointSink, decide: Callable[[], Any]) -> None:
        self._sink = sink
        self.change = change_function(sink.attempt.operator)
        returned = self.call(decide)
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
