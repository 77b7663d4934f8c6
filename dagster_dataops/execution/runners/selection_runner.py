"""SelectionRunner: settle the sketches as records, then copy the lines of records to keep.

A checkpoint holds the sketches, so that a kill loses none of them. ``keep`` reads them in one
thread, in input order. Lines that this package wrote are copied as bytes; other lines are encoded
as results are.
"""

import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import accumulate, chain, compress, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from typing_extensions import override

from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import make_folder
from dagster_dataops.datasets.lines import (
    Interval,
    next_line_start,
    read_lines,
    split_lines,
)
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.errors import DataOpsError, DatasetOperatorError, UnencodableError
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.records.record_failures import failure_of
from dagster_dataops.execution.runners.record_runner import RecordRunner
from dagster_dataops.operators.bound_methods import SKETCH, keep_function
from dagster_dataops.records import decode, encode

if TYPE_CHECKING:
    from array import array

_BLOCK_BYTES: Final = 256 << 10  # small enough to stay in the processor's cache
_SKETCH_BYTES: Final = 256 << 10  # decoded at a time; as objects they take some ten times that


class SelectionRunner(RecordRunner):
    """Runs selection operators."""

    @override
    def compose(self, attempt: Attempt, job: Job) -> Drafts | list[int]:
        return compose(attempt.folder, job.checkpoint, job.dataset, select=_Selection(job))


class _Selection:
    """Writes the lines of kept records.

    Args:
        job: Of the operator's sketches, all settled.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.tick = job.tick

    def write(self, results: JsonlWriter, failed: "array[int]") -> None:
        """Write the lines of kept records.

        Raises:
            DatasetOperatorError: ``keep`` raised, or did not yield one bool a sketch.
            InputError: The input changed in the meantime.
            RunStoppedError: A stop was requested.
        """
        job = self._job
        with (
            closing(SegmentReader(job.checkpoint.folder)) as reader,
            _scratch(job.checkpoint.folder / "scratch") as scratch,
        ):
            sketches = chain.from_iterable(_sketches(job, reader))
            _copy(job, failed, _Verdicts(job, sketches, scratch), results)
        job.check_input_unchanged()


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, deleted afterwards; files that a killed run left are deleted first."""
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sketches(job: Job, reader: SegmentReader) -> Iterator[Iterator[Any]]:
    """Yield the settled sketches in input order, some hundred at a time."""
    for span, segment, offset in job.checkpoint.table.ordered():
        output = reader.read(segment, offset, span.output_bytes)
        at = 0
        while at < len(output):
            end = output.find(b"\n", at + _SKETCH_BYTES) + 1 or len(output)
            rows = orjson.loads(b"[" + output[at : end - 1].replace(b"\n", b",") + b"]")
            job.tick()
            yield map(itemgetter(SKETCH), rows)
            at = end


class _Verdicts:
    """Checks the bools that ``keep`` yields.

    Args:
        job: Of the operator.
        sketches: The settled sketches in input order.
        scratch: An empty folder for files of ``keep``.
    """

    def __init__(self, job: Job, sketches: Iterator[Any], scratch: Path) -> None:
        self._job = job
        returned = self._call(keep_function(job.operator, scratch), sketches)
        if not isinstance(returned, Iterable):
            kind = type(returned).__name__
            raise self._error(f"keep returned a {kind}; yield True or False for each sketch")
        self._verdicts: Iterator[object] = self._call(iter, returned)

    def take(self, count: int) -> list[bool]:
        """Return the next ``count`` verdicts."""
        taken: list[bool] = self._call(list, islice(self._verdicts, count))
        if len(taken) < count:
            raise self._error("keep yielded fewer verdicts than it was given sketches")
        others = set(map(type, taken)) - {bool}
        if others:
            kind = min(other.__name__ for other in others)
            raise self._error(f"keep yielded a {kind}; yield True or False for each sketch")
        return taken

    def finish(self) -> None:
        """Check that ``keep`` yields no more bools than there are sketches."""
        if self._call(list, islice(self._verdicts, 1)):
            raise self._error("keep yielded more verdicts than it was given sketches")

    def _call(self, function: Callable[[Any], Any], given: Any) -> Any:
        """Call code of the operator; its exceptions become errors that name the operator."""
        try:
            return function(given)
        except DataOpsError:
            raise
        except self._job.context.interrupts:
            raise
        except BaseException as error:
            failure = failure_of(error)
            reason = f"{failure.exception}: {failure.message}"
            raise DatasetOperatorError(self._job.name, reason, failure.traceback_text) from error

    def _error(self, reason: str) -> DatasetOperatorError:
        return DatasetOperatorError(self._job.name, reason, "")


def _copy(job: Job, failed: "array[int]", verdicts: _Verdicts, results: JsonlWriter) -> None:
    """Write the lines of kept records, block by block."""
    ours = _canonical(job.dataset)
    with job.dataset.path.open("rb") as source:
        for start, block in _blocks(source.fileno(), job.content):
            lines = _sketched(split_lines(block), start, start + len(block), failed)
            if not ours:
                lines = [line for line in lines if not line.isspace()]
            kept = list(compress(lines, verdicts.take(len(lines))))
            if kept:
                text = b"".join(kept if ours else map(_encoded, kept))
                results.write(text, len(kept))
            job.tick()
    verdicts.finish()


def _canonical(dataset: JsonlDataset) -> bool:
    """Whether this package wrote every line; it has counted the rows of its files only."""
    return dataset.fingerprint is not None and dataset.rows is not None


def _blocks(descriptor: int, content: Interval) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, some hundred at a time, after the position where they start."""
    start = content.start
    while start < content.end:
        cut = next_line_start(descriptor, min(start + _BLOCK_BYTES, content.end), content.end)
        yield start, read_lines(descriptor, Interval(start, cut))
        start = cut


def _sketched(lines: list[bytes], start: int, end: int, failed: "array[int]") -> list[bytes]:
    """Return the lines of [start, end) without those of failed records."""
    without = set(failed[bisect_left(failed, start) : bisect_left(failed, end)])
    if not without:
        return lines
    positions = accumulate(map(len, lines), initial=start)
    return [line for line, at in zip(lines, positions, strict=False) if at not in without]


def _encoded(line: bytes) -> bytes:
    try:
        return encode(decode(line))
    except UnencodableError:  # it nests too deep for the encoder; keep its bytes
        return line.strip() + b"\n"
