"""SelectionRunner: settle the sketches as records, then copy the lines of records to keep.

A checkpoint holds the sketches, so that a kill loses none of them. ``keep`` reads them in one
thread, in input order. Lines that this package wrote are copied as bytes; other lines are encoded
like results. An operator with ``change`` makes new lines of the records for which ``keep`` yields
no bool.
"""

import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate, chain, compress, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from typing_extensions import override

from dagster_dataops.byte_ranges import opened
from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal
from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.drafts import Drafts, ResultWriter
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import make_folder
from dagster_dataops.datasets.lines import line_blocks, split_lines
from dagster_dataops.errors import DataOpsError, DatasetOperatorError, UnencodableError
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.records.record_failures import failure_of
from dagster_dataops.execution.runners.record_runner import RecordRunner
from dagster_dataops.operators.bound_methods import SKETCH, change_function, keep_function
from dagster_dataops.operators.outcomes.return_contract import ContractError, encode_outcome
from dagster_dataops.records import Record, decode, encode

if TYPE_CHECKING:
    from array import array

_BLOCK_BYTES: Final = 256 << 10  # bytes; small enough for the processor's cache
_SKETCH_BYTES: Final = 256 << 10  # bytes decoded at a time; objects take about ten times that


class SelectionRunner(RecordRunner):
    """Runs selection operators."""

    @override
    def compose(self, attempt: Attempt, job: Job) -> Drafts | list[int]:
        traced = attempt.settings.trace
        select = _Selection(job)
        return compose(attempt.folder, job.checkpoint, job.dataset, traced=traced, select=select)


class _Selection:
    """Writes the lines of kept records.

    Args:
        job: Of the operator's sketches, all settled.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.tick = job.tick

    def write(self, results: ResultWriter, failed: "array[int]", kept: KeptJournal | None) -> None:
        """Write the lines of kept records, and which ones these are.

        Raises:
            DatasetOperatorError: ``keep`` failed, or did not yield one bool per sketch.
            InputError: The input changed in the meantime.
            RunStoppedError: A stop was requested.
        """
        job = self._job
        with (
            closing(SegmentReader(job.checkpoint.folder)) as reader,
            _scratch(job.checkpoint.folder / "scratch") as scratch,
        ):
            sketches = chain.from_iterable(_sketches(job, reader))
            verdicts = _Verdicts(job, sketches, scratch)
            made = _Lines(job, verdicts)
            for span, output, notes in _copy(job, failed, verdicts, made, results):
                if kept is not None:
                    kept.add(span, output, (), notes)
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
    """Checks the verdicts that ``keep`` yields.

    Args:
        job: The job of the operator.
        sketches: The settled sketches in input order.
        scratch: An empty folder for files of ``keep``.

    Attributes:
        change: ``change`` of the operator; ``None`` if all verdicts are bools.
    """

    def __init__(self, job: Job, sketches: Iterator[Any], scratch: Path) -> None:
        self._job = job
        self.change = change_function(job.operator)
        returned = self.call(keep_function(job.operator, scratch), sketches)
        if not isinstance(returned, Iterable):
            kind = type(returned).__name__
            raise self._error(f"keep returned a {kind}; yield True or False for each sketch")
        self._verdicts: Iterator[object] = self.call(iter, returned)

    def take(self, count: int) -> list[Any]:
        """Return the next ``count`` verdicts."""
        taken: list[Any] = self.call(list, islice(self._verdicts, count))
        if len(taken) < count:
            raise self._error("keep yielded fewer verdicts than it was given sketches")
        others = set(map(type, taken)) - {bool}
        if others and self.change is None:
            kind = min(other.__name__ for other in others)
            raise self._error(f"keep yielded a {kind}; yield True or False for each sketch")
        return taken

    def finish(self) -> None:
        """Check that ``keep`` yields no more verdicts than there are sketches."""
        if self.call(list, islice(self._verdicts, 1)):
            raise self._error("keep yielded more verdicts than it was given sketches")

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call code of the operator; its exceptions become errors that name the operator."""
        try:
            return function(*given)
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


class _Lines:
    """Makes the lines of the result.

    Args:
        job: The job of the operator.
        verdicts: The verdicts, with ``change``.
    """

    def __init__(self, job: Job, verdicts: _Verdicts) -> None:
        self.ours = _canonical(job.dataset)
        self._call, self._change = verdicts.call, verdicts.change

    def of(self, lines: list[bytes], verdicts: list[Any]) -> tuple[bytes, list[int]]:
        """Return the result for lines of the input and their verdicts.

        Returns:
            The lines of the result, and how many of them each line of the input became.
        """
        if self._change is None:
            kept = compress(lines, verdicts)
            return b"".join(kept if self.ours else map(_encoded, kept)), verdicts
        made = [self._made(*one) for one in zip(lines, verdicts, strict=True)]
        return b"".join(made), [one.count(b"\n") for one in made]

    def _made(self, line: bytes, verdict: object) -> bytes:
        if verdict is False:
            return b""
        if verdict is True:
            return line if self.ours else _encoded(line)
        return self._call(self._changed, decode(line), verdict)  # type: ignore[no-any-return]

    def _changed(self, record: Record, verdict: object) -> bytes:
        assert self._change is not None  # noqa: S101 - else there are only bools
        try:
            return encode_outcome(self._change(record, verdict), record)[0]
        except UnencodableError as error:
            msg = f"change returned a record that cannot be written: {error}"
            raise ContractError(msg) from None


def _copy(
    job: Job, failed: "array[int]", verdicts: _Verdicts, made: _Lines, results: ResultWriter
) -> Iterator[tuple[Span, bytes, SpanNotes | None]]:
    """Write the lines of kept records, block by block.

    Yields:
        Each block as a span of the records that did not fail, its result lines and its notes.
    """
    with opened(job.dataset.path) as source:
        for start, block in line_blocks(source, job.content, _BLOCK_BYTES):
            lines = _sketched(split_lines(block), start, start + len(block), failed)
            if not made.ours:
                lines = [line for line in lines if not line.isspace()]
            text, emitted = made.of(lines, verdicts.take(len(lines)))
            if text:
                results.write(text, sum(emitted))
            job.tick()
            yield _span(start, len(block), emitted, text), text, SpanNotes.of_emitted(emitted)
    verdicts.finish()


def _span(start: int, length: int, emitted: Sequence[int], output: bytes) -> Span:
    return Span(
        start=start,
        length=length,
        records=len(emitted),
        emitted=sum(emitted),
        dropped=emitted.count(0),
        failed=0,
        output_bytes=len(output),
        error_bytes=0,
        input_check=0,
        output_check=0,
    )


def _canonical(dataset: JsonlDataset) -> bool:
    """Whether this package wrote every line: the number of rows is known only for its files."""
    return dataset.fingerprint is not None and dataset.rows is not None


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
    except UnencodableError:  # nested too deep for the encoder; keep its bytes
        return line.strip() + b"\n"
