"""Dataset operators in partitions: split ranges of the inputs, work on partitions, merge.

An input with lines that are no records is left to one thread, which reports them in order.
"""

import heapq
import marshal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import orjson

from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.datasets.lines import (
    Interval,
    content_interval,
    iterate_lines,
    next_line_start,
)
from dagster_dataops.errors import DatasetOperatorError, StorageError
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.runners.part_files import (
    Column,
    PartsFile,
    PartsFolder,
    SentLocation,
    write_parts,
)
from dagster_dataops.execution.runners.stages import (
    RANGE,
    SentOperator,
    Stages,
    StageTask,
    is_shared,
    parts_folder,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_range
from dagster_dataops.operators.options.read_columns import ReadKey
from dagster_dataops.operators.options.settings import ALLOWED, FAILING
from dagster_dataops.operators.partitioning import Parts, Plan, Regrouped, Regrouping
from dagster_dataops.records import Record, decode

LEAST_BYTES: Final = 64 << 20  # of less input, starting workers takes longer than the work
RANGE_BYTES: Final = 16 << 20
_WORKED: Final = "worked"  # the kind of the files of partitions
_BLOCK_BYTES: Final = 64 << 10
_IN_ORDER_BYTES: Final = 8 << 20  # of a partition, read from a bucket by one request
_MERGED_BYTES: Final = 512 << 10  # at most, of each of all partitions
_SAMPLES: Final = 500
_SAMPLE_BYTES: Final = 64 << 10
_NUMBER_BITS: Final = 32  # of the number of a record in its range


class DatasetStages:
    """Runs a dataset operator in partitions.

    Args:
        attempt: Its attempt.
        fingerprint: Of the result.
        regrouping: How it works in partitions.
        state: Returns the progress.

    Attributes:
        records: The number of records of the inputs.
        lacking: How many records lack a column that is read, by its name.
    """

    def __init__(
        self,
        attempt: NodeAttempt,
        fingerprint: RunFingerprint,
        regrouping: Regrouping,
        state: Callable[[], ProgressState],
    ) -> None:
        self._attempt, self._regrouping = attempt, regrouping
        if attempt.context.cluster is not None:
            from dagster_dataops.execution.leases.staying_agents import keep_agents

            keep_agents(attempt)
        self._stages = Stages(attempt, folder_of_stages(attempt), fingerprint, state)
        self._sent = SentOperator(attempt.operator)
        self._inputs = list(attempt.inputs)
        self.records = 0
        self.lacking = Counter[str]()

    def run(self) -> bool:
        """Run the stages; return whether all lines of the inputs are records that can be split."""
        memory = self._stages.memory(self._regrouping.max_bytes)
        ranges = list(self._ranges(self._stages.range_bytes(memory, RANGE_BYTES)))
        sizes = [dataset.size_bytes for dataset in self._inputs]
        plan = self._regrouping.plan(sum(sizes), memory, self._sampled)
        sources = [SentLocation(self._stages.shared(dataset.location)) for dataset in self._inputs]
        split = _SplitInput(self._sent, self._stages.folder, sizes, sources, plan)
        counts: Sequence[Any] = self._stages.run("split", split, ranges, plan)
        if any(count["refused"] for count in counts):
            self._stages.forget()
            self._attempt.log("lines of its input cannot be put into partitions; using one thread")
            return False
        self.records = sum(count["records"] for count in counts)
        for count in counts:
            self.lacking.update(count["lacking"])
        self._count = plan.partitions
        inputs = [cast("int", task["input"]) for task in ranges]
        work = _Work(self._sent, self._stages.folder, sizes, inputs, memory)
        numbers: list[Record] = [{"number": number} for number in range(self._count)]
        self._stages.run("work", work, numbers, [plan, ranges])
        self._stages.end()
        return True

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yield lines of the result, and their number.

        Raises:
            DatasetOperatorError: The operator cannot process a record; it is the first such record.
        """
        parts = [self._entries(number) for number in range(self._count)]
        merged: Iterable[tuple[bytes, bytes | _StoredText]] = (
            chain.from_iterable(parts)
            if self._regrouping.in_order
            else heapq.merge(*parts, key=itemgetter(0))
        )
        for _, entry in merged:
            text = entry if isinstance(entry, bytes) else entry.read()
            rows = text.count(b"\n")
            if text and not rows:
                reason = f"{ValueError.__name__}: {text.decode()}"
                raise DatasetOperatorError(self._attempt.name, reason, "")
            yield text, rows

    def _entries(self, number: int) -> Iterator[tuple[bytes, "bytes | _StoredText"]]:
        """Yield key and text of the entries of a partition.

        All partitions are read at the same time if they are merged. So each has little in memory:
        a text that is larger than its share stays in the file until its turn.
        """
        file = self._stages.folder.file(_WORKED, number)
        if self._regrouping.in_order:
            for block in PartsFile(file, _IN_ORDER_BYTES):
                yield from marshal.loads(block)  # noqa: S302 - our own file
            return
        share = max(_BLOCK_BYTES, self._regrouping.max_bytes // (4 * self._count))
        parts = PartsFile(file, min(_MERGED_BYTES, share))
        at = -1
        for block in parts:  # `enumerate` would keep each block
            at += 1
            entries = marshal.loads(block)  # noqa: S302
            if len(block) > share:
                entries = [
                    (key, text if len(text) <= share else _StoredText(parts, at, index))
                    for index, (key, text) in enumerate(entries)
                ]
            del block  # all entries are in memory beside it
            yield from entries

    def forget(self) -> None:
        """Delete the files."""
        self._stages.forget()

    def _ranges(self, most: int) -> Iterator[Record]:
        number = 0
        for at, dataset in enumerate(self._inputs):
            start, end = content_interval(dataset.location)
            with opened(dataset.location) as source:
                while start < end:
                    cut = next_line_start(source, min(start + most, end), end)
                    yield {"number": number, "input": at, "start": start, "end": cut}
                    number, start = number + 1, cut

    def _sampled(self) -> Iterator[Record]:
        """Yield records at even distances of the first input."""
        location = self._inputs[0].location
        start, end = content_interval(location)
        with opened(location) as source:
            for number in range(_SAMPLES):
                at = start + (end - start) * number // _SAMPLES
                block = read_range(source, at, min(_SAMPLE_BYTES, end - at))
                for line in block.split(b"\n", 2)[1:2]:  # whole, or no record
                    with suppress(ValueError):
                        yield decode(line)


class _StoredText(NamedTuple):
    """A text in a file of parts."""

    parts: PartsFile
    at: int  # the number of the block
    entry: int  # its number in the block

    def read(self) -> bytes:
        text: bytes = marshal.loads(self.parts[self.at])[self.entry][1]  # noqa: S302
        return text


def folder_of_stages(attempt: NodeAttempt) -> PartsFolder:
    """Return the folder of the stages of a dataset operator."""
    size = sum(dataset.size_bytes for dataset in attempt.inputs)
    return parts_folder(attempt, attempt.folder.checkpoints / "partitions", size)


def dataset_stages(
    attempt: NodeAttempt, fingerprint: RunFingerprint, state: Callable[[], ProgressState]
) -> DatasetStages | None:
    """Return the stages of a dataset operator; ``None`` if it works in one thread."""
    operator = attempt.operator
    sizes = [dataset.size_bytes for dataset in attempt.inputs]
    if not isinstance(operator, Regrouped) or sum(sizes) < LEAST_BYTES:
        return None
    if not _are_files_of_workers(attempt):
        return None
    rule, use = attempt.settings.missing, operator.__dataops__
    if rule == FAILING and any(use.keys_read(number) for number in range(len(sizes))):
        return None
    regrouping = operator.__dataops_regrouping__(sizes)
    return None if regrouping is None else DatasetStages(attempt, fingerprint, regrouping, state)


def _are_files_of_workers(attempt: NodeAttempt) -> bool:
    """Return whether all workers of the stages have the inputs as files."""
    locations = [dataset.location for dataset in attempt.inputs]
    if folder_of_stages(attempt).objects is not None:  # they are in the bucket, or are sent there
        return True
    if is_shared(attempt):  # a copy of an object is on this machine alone
        return all(isinstance(location, Path) for location in locations)
    return all(local_path(location) is not None for location in locations)


@dataclass(frozen=True)
class _DatasetTask(StageTask):
    sizes: list[int]  # the bytes of each input

    @property
    def regrouping(self) -> Regrouping:
        operator = cast("Regrouped", self.sent.operator)
        return cast("Regrouping", operator.__dataops_regrouping__(self.sizes))


@dataclass(frozen=True)
class _SplitInput(_DatasetTask):
    """Splits a range of an input; the last part has the counts of its records."""

    kind = RANGE
    inputs: list[SentLocation]
    plan: Plan

    @override
    def do(self, task: Record, file: Location) -> Record:
        number, at = cast("int", task["number"]), cast("int", task["input"])
        interval = Interval(cast("int", task["start"]), cast("int", task["end"]))
        use = self.sent.operator.__dataops__
        keys = [] if use.resolved.missing == ALLOWED else use.keys_read(at)
        read = _DecodedLines(keys)
        with opened(self.inputs[at].location) as source:
            records = read.records(line.text for line in iterate_lines(source, [interval]))
            numbered = enumerate(records, number << _NUMBER_BITS)
            parts, refused = self._parts(numbered, at)
        refused = refused or read.refused
        counts = {"records": read.count, "refused": refused, "lacking": read.lacking}
        write_parts(file, [*parts, orjson.dumps(counts)])
        return cast("Record", counts)

    @override
    def returned(self, parts: PartsFile) -> Record:
        return cast("Record", orjson.loads(parts[-1]))

    def _parts(self, numbered: Iterator[tuple[int, Record]], at: int) -> tuple[Parts, bool]:
        """Return the parts, and whether a record failed; one thread then finds the first such."""
        try:
            return self.regrouping.split(numbered, at, self.plan), False
        except (OSError, StorageError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - whatever a record of a user can raise
            return [], True


class _DecodedLines:
    """Decodes lines.

    Attributes:
        count: How many records there were.
        refused: Whether a line was none; the lines after it are left out.
        lacking: How many records lack a column, by its name.
    """

    def __init__(self, keys: Sequence[ReadKey]) -> None:
        self._keys = keys
        self.count, self.refused = 0, False
        self.lacking = Counter[str]()

    def records(self, lines: Iterable[bytes]) -> Iterator[Record]:
        for line in lines:
            try:
                record = decode(line)
            except ValueError:
                self.refused = True
                return
            self.count += 1
            for key in self._keys:
                if not key.is_in(record):
                    self.lacking[key.name] += 1
            yield record


@dataclass(frozen=True)
class _Work(_DatasetTask):
    """Works on a partition."""

    kind = _WORKED
    inputs: list[int]  # the number of the input of each range
    memory: int

    @override
    def do(self, task: Record, file: Location) -> Record:
        files: list[list[Location]] = [[] for _ in self.sizes]
        for at, of_input in enumerate(self.inputs):
            files[of_input].append(self.folder.file(RANGE, at))
        number = cast("int", task["number"])
        with self.folder.scratch() as scratch:
            parts = [Column(each, number).fetched(scratch) for each in files]
            worked = self.regrouping.work(parts, scratch, self.memory)
            write_parts(file, map(marshal.dumps, _blocks(worked)))
        return {}


def _blocks(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    block, room = [], _BLOCK_BYTES
    for entry in entries:
        block.append(entry)
        room -= len(entry[1])
        if room <= 0:
            yield block
            block, room = [], _BLOCK_BYTES
    if block:
        yield block
