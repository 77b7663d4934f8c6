"""The second half of a selection in partitions: split the sketches, decide, make the lines.

Each stage has tasks that workers do. The first two write the verdicts to files. The third writes
the lines of the result to files, which the run then joins in order.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.runners.kept_lines import KeptLines, ResultBlock
from dagster_dataops.execution.runners.part_files import Column, PartsFile, write_parts
from dagster_dataops.execution.runners.stages import (
    RANGE,
    SentOperator,
    Stages,
    StageTask,
    parts_file,
    scratch_folder,
)
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.operators.bound_methods import SKETCH, change_function
from dagster_dataops.operators.partitioning import Partitioned, Partitioning
from dagster_dataops.records import Record

if TYPE_CHECKING:
    from array import array

LEAST_RECORDS: Final = 200_000  # of fewer, starting workers takes longer than deciding
RANGE_BYTES: Final = 16 << 20  # of the input
_DECIDED: Final = "decided"  # the kind of the files of partitions
_LINES: Final = "lines"  # the kind of the files with the lines of ranges
_PARTS_FORM: Final = 2  # increase it if parts change: those of an unfinished run are made again
_SKETCH_SHARE: Final = 2  # the bytes of the sketches of a range, of those of its input, at most
_BEFORE, _AFTER = f'{{"{SKETCH}":'.encode(), b"}\n"  # the line of a sketch, around it
_SKETCH_BYTES: Final = 256 << 10  # bytes decoded at a time; objects take about ten times that


def selection_stages(sink: CheckpointSink, failed: "array[int]") -> "SelectionStages | None":
    """Return the stages of the second half of a selection; ``None`` if it runs in one thread.

    Args:
        sink: Of the selection; all sketches are settled.
        failed: The byte positions of the failed records, in rising order.
    """
    operator = sink.attempt.operator
    if not isinstance(operator, Partitioned) or sink.checkpoint.table.records < LEAST_RECORDS:
        return None
    partitioning = operator.__dataops_partitioning__()
    return None if partitioning is None else SelectionStages(sink, partitioning, failed)


class SelectionStages:
    """Runs the second half of a selection in partitions.

    Args:
        sink: Of the selection; all sketches are settled.
        partitioning: How its operator decides.
        failed: The byte positions of the failed records, in rising order.
    """

    def __init__(
        self, sink: CheckpointSink, partitioning: Partitioning, failed: "array[int]"
    ) -> None:
        self._sink, self._partitioning, self._failed = sink, partitioning, failed
        self._stages = Stages.of(sink)
        self._folder = self._stages.folder
        self._sent = SentOperator(sink.attempt.operator)
        self._memory = self._stages.memory(partitioning.max_bytes)
        size = self._stages.range_bytes(self._memory, RANGE_BYTES)
        self._ranges = list(_ranges(sink, failed, size))

    def decide(self) -> None:
        """Run the stages that make the verdicts."""
        checkpoint = self._sink.checkpoint
        checkpoint.segments.fetch()  # workers read them in the folder
        sketch_bytes = sum(checkpoint.table.column("output_bytes"))
        self._count = self._partitioning.partitions(sketch_bytes, self._memory)
        split = _SplitSketches(self._sent, self._folder, checkpoint.folder, self._count)
        self._stages.run("split", split, self._ranges, RANGE, (_PARTS_FORM, self._count))
        decide = _Decide(self._sent, self._folder, len(self._ranges), self._memory)
        numbers: list[Record] = [{"number": number} for number in range(self._count)]
        self._stages.run("decide", decide, numbers, _DECIDED, (_PARTS_FORM, len(self._ranges)))

    def verdicts(self) -> Iterator[Any]:
        """Yield the verdicts in input order."""
        decided = _decided(self._folder, self._count)
        for number in range(len(self._ranges)):
            yield from _verdicts(self._partitioning, self._folder, number, decided)

    @property
    def makes_lines(self) -> bool:
        """Whether workers should make the lines: copying them would take no longer."""
        dataset, change = self._sink.work.dataset, change_function(self._sink.attempt.operator)
        return isinstance(dataset.location, Path) and not (dataset.canonical and change is None)

    def blocks(self) -> Iterator[ResultBlock]:
        """Make the lines of the result in workers; then yield them in input order."""
        lines = _MakeLines(self._sent, self._folder, self._sink.work.dataset, self._count)
        self._stages.run("lines", lines, self._ranges, _LINES, self._count)
        for number in range(len(self._ranges)):
            parts = PartsFile(parts_file(self._folder, _LINES, number))
            for at in range(0, len(parts), 2):
                fields, notes = orjson.loads(parts[at])
                yield ResultBlock(Span(*fields), parts[at + 1], SpanNotes.from_text(notes))


def _ranges(sink: CheckpointSink, failed: "array[int]", most: int) -> Iterator[Record]:
    """Yield descriptions of the ranges: numbers, bytes of the input, places of the sketches."""
    content, number = sink.work.content, 0
    start, size = content.start, 0
    places: list[list[int]] = []
    for span, segment, offset in sink.checkpoint.table.ordered():
        if span.start - start >= most or size >= most // _SKETCH_SHARE:
            yield _range(number, start, span.start, places, failed)
            number, start, size, places = number + 1, span.start, 0, []
        size += span.output_bytes
        if places and places[-1][0] == segment and sum(places[-1][1:]) == offset:
            places[-1][2] += span.output_bytes
        elif span.output_bytes:
            places.append([segment, offset, span.output_bytes])
    yield _range(number, start, content.end, places, failed)


def _range(
    number: int, start: int, end: int, places: list[list[int]], failed: "array[int]"
) -> Record:
    among = failed[bisect_left(failed, start) : bisect_left(failed, end)]
    return {"number": number, "start": start, "end": end, "places": places, "failed": list(among)}  # type: ignore[dict-item]


def _decided(folder: Path, partitions: int) -> list[PartsFile]:
    """Return the files with what each partition has decided."""
    return [PartsFile(parts_file(folder, _DECIDED, number)) for number in range(partitions)]


def _verdicts(
    partitioning: Partitioning, folder: Path, number: int, decided: Sequence[PartsFile]
) -> Iterator[Any]:
    """Yield the verdicts of a range."""
    rest = PartsFile(parts_file(folder, RANGE, number))[-1]
    return partitioning.verdicts([parts[number] for parts in decided], rest)


@dataclass(frozen=True)
class _SelectionTask(StageTask):
    @property
    def partitioning(self) -> Partitioning:
        return cast(
            "Partitioning", cast("Partitioned", self.sent.operator).__dataops_partitioning__()
        )


@dataclass(frozen=True)
class _SplitSketches(_SelectionTask):
    """Splits the sketches of a range."""

    checkpoint: Path
    partitions: int

    def __call__(self, record: Record) -> Record:
        reader = SegmentReader(Segments(self.checkpoint))
        try:
            sketches = chain.from_iterable(_sketches(reader, cast("Any", record["places"])))
            parts, rest = self.partitioning.split(sketches, self.partitions)
        finally:
            reader.close()
        path = parts_file(self.folder, RANGE, cast("int", record["number"]))
        write_parts(path, [*parts, rest])
        return {}


def _sketches(reader: SegmentReader, places: list[list[int]]) -> Iterator[list[Any]]:
    for segment, offset, length in places:
        yield from decoded_sketches(reader.read(segment, offset, length))


def decoded_sketches(output: bytes) -> Iterator[list[Any]]:
    """Yield the sketches in an output, some hundred at a time.

    A line end cannot be in a JSON value. So all that is around the values is cut out, and they are
    decoded as one list, without an object for each line.
    """
    at = 0
    while at < len(output):
        end = output.find(b"\n", at + _SKETCH_BYTES) + 1 or len(output)
        values = output[at + len(_BEFORE) : end - len(_AFTER)].replace(_AFTER + _BEFORE, b",")
        yield orjson.loads(b"[%b]" % values)
        at = end


@dataclass(frozen=True)
class _Decide(_SelectionTask):
    """Decides a partition."""

    ranges: int
    memory: int

    def __call__(self, record: Record) -> Record:
        number = cast("int", record["number"])
        files = [parts_file(self.folder, RANGE, at) for at in range(self.ranges)]
        parts = Column(files, number)
        with scratch_folder(self.folder) as scratch:
            decided = self.partitioning.decide(parts, scratch, self.memory)
            write_parts(parts_file(self.folder, _DECIDED, number), decided)
        return {}


@dataclass(frozen=True)
class _MakeLines(_SelectionTask):
    """Makes the lines of the result of a range."""

    dataset: JsonlDataset
    partitions: int

    def __call__(self, record: Record) -> Record:
        number = cast("int", record["number"])
        decided = _decided(self.folder, self.partitions)
        verdicts = _verdicts(self.partitioning, self.folder, number, decided)
        write_parts(parts_file(self.folder, _LINES, number), self._blocks(record, verdicts))
        return {}

    def _blocks(self, record: Record, verdicts: Iterator[Any]) -> Iterator[bytes]:
        from array import array

        change = change_function(self.sent.operator)
        lines = KeptLines(change, ours=self.dataset.canonical)
        interval = Interval(cast("int", record["start"]), cast("int", record["end"]))
        failed = array("Q", cast("Any", record["failed"]))
        take: Callable[[int], list[Any]] = lambda count: list(islice(verdicts, count))  # noqa: E731
        with opened(self.dataset.location) as source:
            for block in lines.blocks(source, interval, failed, take):
                notes = block.notes.to_text() if block.notes is not None else ""
                yield orjson.dumps([list(block.span), notes])
                yield block.output
