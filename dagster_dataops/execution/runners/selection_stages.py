"""The second half of a selection in partitions: split the sketches, decide, make the lines.

Each stage has tasks that workers do. The first two write the verdicts to files; if a record is in
several partitions, one task then joins these. The last stage writes the lines of the result to
files, which the run then joins in order.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.runners.kept_lines import KeptLines, ResultBlock
from dagster_dataops.execution.runners.part_files import (
    Column,
    PartsFile,
    PartsFolder,
    SentLocation,
    read_object,
    write_parts,
)
from dagster_dataops.execution.runners.stages import (
    RANGE,
    SentOperator,
    Stages,
    StageTask,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import BucketFile, Location
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.operators.bound_methods import SKETCH, change_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.partitioning import JoinedPartitioning, Partitioned, Partitioning
from dagster_dataops.records import Record

if TYPE_CHECKING:
    from array import array

LEAST_RECORDS: Final = 200_000  # of fewer, starting workers takes longer than deciding
RANGE_BYTES: Final = 16 << 20  # of the input
_DECIDED: Final = "decided"  # the kind of the files of partitions
_JOINED: Final = "joined"  # the kind of the file of all partitions
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
    partitioning = partitioning_of(sink.attempt.operator)
    if partitioning is None or sink.checkpoint.table.records < LEAST_RECORDS:
        return None
    return SelectionStages(sink, partitioning, failed)


def partitioning_of(operator: Operator) -> Partitioning | None:
    """Return how an operator decides in partitions; ``None`` if it does not."""
    return operator.__dataops_partitioning__() if isinstance(operator, Partitioned) else None


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
        self._sent = SentOperator(sink.attempt.operator)
        self._memory = self._stages.memory(partitioning.max_bytes)
        size = self._stages.range_bytes(self._memory, RANGE_BYTES)
        self._ranges = list(_ranges(sink, failed, size))

    def decide(self) -> None:
        """Run the stages that make the verdicts."""
        stages, table = self._stages, self._sink.checkpoint.table
        self._count = self._partitioning.partitions(sum(table.column("output_bytes")), self._memory)
        split = _SplitSketches(self._sent, stages.folder, self._sketches(), self._count)
        stages.run("split", split, self._ranges, (_PARTS_FORM, self._count))
        decide = _Decide(self._sent, stages.folder, len(self._ranges), self._memory)
        numbers: list[Record] = [{"number": number} for number in range(self._count)]
        stages.run("decide", decide, numbers, (_PARTS_FORM, len(self._ranges)))
        if isinstance(self._partitioning, JoinedPartitioning):
            join = _Join(self._sent, stages.folder, len(self._ranges), self._count, self._memory)
            stages.run("join", join, [{"number": 0}], (_PARTS_FORM, len(self._ranges), self._count))
        if not self.makes_lines:
            stages.end()

    def _sketches(self) -> "_Sketches":
        """Return where workers read the sketches: in the folder, or in the bucket."""
        checkpoint, objects = self._sink.checkpoint, self._stages.folder.objects
        if objects is None:
            checkpoint.segments.fetch()
            return _Sketches(checkpoint.folder)
        checkpoint.check_synced()
        checkpoint.sync()
        for task in self._ranges:
            task["places"] = cast("Any", checkpoint.segments.objects(cast("Any", task["places"])))
        return _Sketches(checkpoint.folder, objects)

    def verdicts(self) -> Iterator[Any]:
        """Yield the verdicts in input order."""
        folder = self._stages.folder
        decided = zip(
            *map(PartsFile, _decided(self._partitioning, folder, self._count)), strict=True
        )
        rests = Column([folder.file(RANGE, at) for at in range(len(self._ranges))], -1)
        for parts, rest in zip(decided, rests, strict=True):
            yield from self._partitioning.verdicts(parts, rest)

    @property
    def makes_lines(self) -> bool:
        """Whether workers should make the lines: copying them would take no longer."""
        dataset, change = self._sink.work.dataset, change_function(self._sink.attempt.operator)
        reached = isinstance(dataset.location, Path) or self._stages.folder.objects is not None
        return reached and not (dataset.canonical and change is None)

    def blocks(self) -> Iterator[ResultBlock]:
        """Make the lines of the result in workers; then yield them in input order."""
        stages, dataset = self._stages, self._sink.work.dataset
        source = SentLocation(stages.shared(dataset.location))
        lines = _MakeLines(self._sent, stages.folder, source, dataset.canonical, self._count)
        stages.run("lines", lines, self._ranges, self._count)
        stages.end()
        for number in range(len(self._ranges)):
            parts = iter(PartsFile(stages.folder.file(_LINES, number)))
            for facts, output in zip(parts, parts, strict=True):
                fields, notes = orjson.loads(facts)
                yield ResultBlock(Span(*fields), output, SpanNotes.from_text(notes))


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


def _decided(partitioning: Partitioning, folder: PartsFolder, partitions: int) -> list[Location]:
    """Return the files with what each partition has decided, or with what was joined of these."""
    if isinstance(partitioning, JoinedPartitioning):
        return [folder.file(_JOINED, 0)]
    return [folder.file(_DECIDED, number) for number in range(partitions)]


class _Sketches:
    """Reads the sketches of a range.

    Args:
        folder: The folder of the checkpoint.
        objects: An object in the bucket with the sketches; ``None`` if the folder has them.
    """

    def __init__(self, folder: Path, objects: BucketFile | None = None) -> None:
        self._folder, self._objects = folder, None if objects is None else SentLocation(objects)

    def read(self, places: list[list[Any]]) -> Iterator[list[Any]]:
        """Yield the sketches, some hundred at a time."""
        if self._objects is None:
            with closing(SegmentReader(Segments(self._folder))) as reader:
                for segment, offset, length in places:
                    yield from decoded_sketches(reader.read(segment, offset, length))
            return
        bucket = cast("BucketFile", self._objects.location).bucket
        for key, offset, length in places:
            yield from decoded_sketches(read_object(BucketFile(bucket, key), offset, length))


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

    kind = RANGE
    sketches: _Sketches
    partitions: int

    @override
    def do(self, task: Record, file: Location) -> Record:
        sketches = chain.from_iterable(self.sketches.read(cast("Any", task["places"])))
        parts, rest = self.partitioning.split(sketches, self.partitions)
        write_parts(file, [*parts, rest])
        return {}


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

    kind = _DECIDED
    ranges: int
    memory: int

    @override
    def do(self, task: Record, file: Location) -> Record:
        files = [self.folder.file(RANGE, at) for at in range(self.ranges)]
        with self.folder.scratch() as scratch:
            parts = Column(files, cast("int", task["number"])).fetched(scratch)
            write_parts(file, self.partitioning.decide(parts, scratch, self.memory))
        return {}


@dataclass(frozen=True)
class _Join(_SelectionTask):
    """Joins what the partitions have found."""

    kind = _JOINED
    ranges: int
    partitions: int
    memory: int

    @override
    def do(self, task: Record, file: Location) -> Record:
        decided = (PartsFile(self.folder.file(_DECIDED, at)) for at in range(self.partitions))
        rests = Column([self.folder.file(RANGE, at) for at in range(self.ranges)], -1)
        partitioning = cast("JoinedPartitioning", self.partitioning)
        with self.folder.scratch() as scratch:
            fetched = rests.fetched(scratch)
            write_parts(file, partitioning.join(decided, fetched, scratch, self.memory))
        return {}


@dataclass(frozen=True)
class _MakeLines(_SelectionTask):
    """Makes the lines of the result of a range."""

    kind = _LINES
    source: SentLocation
    canonical: bool
    partitions: int

    @override
    def do(self, task: Record, file: Location) -> Record:
        number = cast("int", task["number"])
        partitioning = self.partitioning
        decided = list(Column(_decided(partitioning, self.folder, self.partitions), number))
        rest = PartsFile(self.folder.file(RANGE, number))[-1]
        verdicts = iter(partitioning.verdicts(decided, rest))
        write_parts(file, self._blocks(task, verdicts))
        return {}

    def _blocks(self, task: Record, verdicts: Iterator[Any]) -> Iterator[bytes]:
        from array import array

        change = change_function(self.sent.operator)
        lines = KeptLines(change, ours=self.canonical)
        interval = Interval(cast("int", task["start"]), cast("int", task["end"]))
        failed = array("Q", cast("Any", task["failed"]))
        take: Callable[[int], list[Any]] = lambda count: list(islice(verdicts, count))  # noqa: E731
        with opened(self.source.location) as source:
            for block in lines.blocks(source, interval, failed, take):
                notes = block.notes.to_text() if block.notes is not None else ""
                yield orjson.dumps([list(block.span), notes])
                yield block.output
