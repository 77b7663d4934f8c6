"""DatasetRunner: call the operator with whole datasets, in the caller's thread.

A parameter annotated as an iterable gets records one by one; other parameters get lists. A result
that is an iterator is written record by record.
"""

import inspect
import itertools
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import orjson

from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.publish.drafts import Drafts, DraftWriter, drafting
from dagster_dataops.checkpoints.publish.record_summary import RecordSummary
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.file_reads import (
    FileReadLog,
    check_unchanged,
    noted_reads,
)
from dagster_dataops.datasets.lines import Line, LineCounter, iterate_lines, opened_content
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.errors import (
    DataOpsError,
    DatasetOperatorError,
    ExportError,
    MissingColumnError,
    OutageError,
    RecordError,
    RunStoppedError,
    StorageError,
    UnencodableError,
)
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.records.record_failures import (
    INVALID_LINE,
    Failure,
    error_row,
    text_and_traceback,
)
from dagster_dataops.execution.runners.runner import Runner
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.bound_methods import plain_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.kinds.kind import Inputs
from dagster_dataops.operators.options.read_columns import ReadKey, check_keys
from dagster_dataops.operators.options.settings import ALLOWED, FAILING
from dagster_dataops.operators.options.signature import parameters_of
from dagster_dataops.operators.outcomes.column_watch import MISSING_TABLE
from dagster_dataops.operators.outcomes.record_context import TABLE
from dagster_dataops.operators.partitioning import Regrouped
from dagster_dataops.records import Record, decode, encode


class DatasetRunner(Runner):
    """Runs dataset operators."""

    def __init__(self, operator: Operator, inputs: Sequence[JsonlDataset]) -> None:
        identity = " ".join(dataset.identity for dataset in inputs)
        self.fingerprint = RunFingerprint.of(operator.__dataops__, identity)

    @override
    def run(self, attempt: NodeAttempt) -> Drafts:
        """Run the operator and write its result and error file as drafts.

        Raises:
            DatasetOperatorError: The operator failed, or its result is not a dataset.
            RecordError: An input line is not a record and failures are not ignored.
            OutageError: No input line is a record.
        """
        if not isinstance(attempt.operator, Regrouped):
            return self._run(attempt)
        from dagster_dataops.execution.runners.dataset_stages import folder_of_stages
        from dagster_dataops.execution.runners.stages import repaired

        return repaired(attempt, folder_of_stages(attempt), partial(self._run, attempt))

    def _run(self, attempt: NodeAttempt) -> Drafts:
        kind = attempt.operator.__dataops__.spec.kind
        writer = JsonlWriter if kind.makes_folder else attempt.lock.writer  # a listing is short
        with (
            drafting(attempt.folder, "write the result", writer) as drafts,
            _log_of_reads() as reads,
        ):
            call = _Call(attempt, drafts, self.function(attempt), reads)
            finished = call.run(self.fingerprint)
            reads.write()
            check_unchanged(reads.folder)
            counts = {**finished.summary.counts, **noted_reads(reads.folder)}
            finished = replace(finished, summary=replace(finished.summary, counts=counts))
        attempt.check_inputs_unchanged()
        return finished

    def function(self, attempt: NodeAttempt) -> Callable[..., Any]:
        """Return the function of the inputs that returns the elements of the result."""
        return plain_function(attempt.operator)


def hint_of_list(operator: Operator) -> str:
    """Return how a plain function gets one record; empty if it is known to want all of them."""
    spec = operator.__dataops__.spec
    if spec.group or spec.kind.inputs is not Inputs.DATASETS or inspect.isclass(spec.target):
        return ""
    first = next(iter(parameters_of(spec.target)), None)
    if first is None or first.annotation is not first.empty:
        return ""
    return (
        ". It got the list of all records; annotate the first parameter `dict` "
        f"(`def name({first.name}: dict)`) to get one record at a time, or `list` to get all"
    )


@contextmanager
def _log_of_reads() -> Iterator[FileReadLog]:
    """Yield a log in a temporary folder, which the first read makes."""
    folder = Path(gettempdir(), f"dataops-reads-{uuid.uuid4().hex}")
    try:
        with FileReadLog(folder) as reads:
            yield reads
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Call:
    """One call of a dataset operator."""

    def __init__(
        self,
        attempt: NodeAttempt,
        drafts: DraftWriter,
        function: Callable[..., Any],
        reads: FileReadLog,
    ) -> None:
        self._reads = reads
        self._attempt = attempt
        self._function = function
        self._operator = attempt.operator
        self._drafts = drafts
        self._name = attempt.name
        self._first_refused = ""
        self._lacking: dict[str, int | float] = {}
        self._records = self._failed = self._bytes = 0
        self._total_bytes = sum(dataset.size_bytes for dataset in attempt.inputs)

    def run(self, fingerprint: RunFingerprint) -> Drafts:
        with self._attempt.shown(self._state) as ticker:
            self._tick = ticker.tick
            if not self._run_stages(fingerprint):
                self._run_in_thread()
        self._check_any_succeeded()
        if (keeper := self._operator.__dataops__.keeper) is not None:
            keeper.sync()
        drafts = self._drafts.finish(records=self._records, failed=self._failed)
        return replace(drafts, summary=RecordSummary(counts=self._lacking))

    def _run_in_thread(self) -> None:
        for line in self._checked(self._called(self._attempt.inputs)):
            self._drafts.results.write(line)
            self._tick()
            if self._reads.lines:
                self._reads.write()

    def _run_stages(self, fingerprint: RunFingerprint) -> bool:
        """Make the result in partitions; return whether it was possible."""
        if not isinstance(self._operator, Regrouped):
            return False
        from dagster_dataops.execution.runners.dataset_stages import dataset_stages  # few need it

        stages = dataset_stages(self._attempt, fingerprint, self._state)
        if stages is None or not stages.run():
            return False
        self._records, self._bytes = stages.records, self._total_bytes
        for name, number in stages.lacking.items():
            self._lacking[f"{MISSING_TABLE}{TABLE}{name}"] = number
        for lines, rows in stages.lines():
            self._drafts.results.write(lines, rows)
            self._tick()
        return True

    def _check_any_succeeded(self) -> None:
        allowed = not self._attempt.settings.stop_after_failures
        if self._first_refused and self._failed == self._records and not allowed:
            problem = f"no line of its input is a record for it ({counted(self._failed, 'lines')})"
            raise OutageError(self._name, problem, f"The first: {self._first_refused}")

    def _called(self, datasets: Sequence[JsonlDataset]) -> Iterator[object]:
        """Yield the elements that the operator returns."""
        streamed = self._operator.__dataops__.spec.streamed
        sources = [self._watched(dataset, number) for number, dataset in enumerate(datasets)]
        arguments = [
            source if lazily else list(source)
            for source, lazily in zip(sources, streamed, strict=True)
        ]
        try:
            yield from self._iterable(self._function(*arguments))
        except GeneratorExit:  # the result cannot be written: the rest is not needed
            raise
        except self._attempt.context.interrupts:
            raise
        except (DatasetOperatorError, ExportError, RecordError, RunStoppedError, StorageError):
            raise
        except BaseException as error:
            reason, traceback_text = text_and_traceback(error, self._operator)
            reason += hint_of_list(self._operator)
            raise DatasetOperatorError(self._name, reason, traceback_text) from error

    def _iterable(self, returned: object) -> Iterable[object]:
        if isinstance(returned, (dict, str, bytes)) or not isinstance(returned, Iterable):
            kind = type(returned).__name__
            reason = f"it returned a {kind}; return a list of dicts, or an iterator of them"
            reason += hint_of_list(self._operator)
            raise DatasetOperatorError(self._name, reason, "")
        return returned

    def _checked(self, returned: Iterator[object]) -> Iterator[bytes]:
        for position, record in enumerate(returned):
            if not isinstance(record, dict):
                kind = type(record).__name__
                reason = f"element {position} of its result is a {kind}, not a dict"
                reason += hint_of_list(self._operator)
                raise DatasetOperatorError(self._name, reason, "")
            try:
                yield encode(record, self._operator.__dataops__.keeper)
            except UnencodableError as error:
                reason = f"element {position} of its result: {error}"
                raise DatasetOperatorError(self._name, reason, "") from None

    def _watched(self, dataset: JsonlDataset, number: int) -> Iterator[Record]:
        """Return the records of an input; those that lack a column that is read count, or fail."""
        rule = self._attempt.settings.missing
        keys = [] if rule == ALLOWED else self._operator.__dataops__.keys_read(number)
        whole = self._operator.__dataops__.spec.kind.exports  # it may read the file itself
        needed = keys if rule == FAILING and not whole else []
        records = self._read(dataset, needed)
        if rule == FAILING and whole:
            return self._refusing(records, keys)
        return self._counted(records, keys) if keys and not needed else records

    def _refusing(self, records: Iterator[Record], keys: Sequence[ReadKey]) -> Iterator[Record]:
        for index, record in enumerate(records):
            try:
                check_keys(record, keys)
            except MissingColumnError as error:
                raise DatasetOperatorError(self._name, f"record {index}: {error}", "") from None
            yield record

    def _counted(self, records: Iterator[Record], keys: Sequence[ReadKey]) -> Iterator[Record]:
        for record in records:
            for key in keys:
                if not key.is_in(record):
                    row = f"{MISSING_TABLE}{TABLE}{key.name}"
                    self._lacking[row] = self._lacking.get(row, 0) + 1
            yield record

    def _read(self, dataset: JsonlDataset, needed: Sequence[ReadKey]) -> Iterator[Record]:
        """Yield the records of an input; lines that are not records go to the error file."""
        with opened_content(dataset.location) as (source, interval):
            counter = LineCounter(source)
            lines = iterate_lines(source, [interval])
            for index, line in zip(itertools.count(), lines, strict=False):
                self._records += 1
                self._bytes += line.end - line.start
                self._tick()
                try:
                    record = decode(line.text)
                    check_keys(record, needed)
                except ValueError as error:
                    kind = type(error).__name__ if isinstance(error, DataOpsError) else INVALID_LINE
                    refused = Failure(kind, str(error), "")
                    self._refuse(dataset, index, counter.line_at(line.start), line, refused)
                else:
                    yield record

    def _refuse(
        self, dataset: JsonlDataset, index: int, number: int, line: Line, failure: Failure
    ) -> None:
        place, reason = str(dataset.location), failure.message
        self._first_refused = self._first_refused or f"{place}, line {number}: {reason}"
        if not self._attempt.settings.ignore_errors:
            raise RecordError(self._name, index, place, number, failure.exception, reason, "")
        failed = error_row(failure, line.text, self._name)
        row = {"index": index, "path": place, "line": number, **failed}
        self._drafts.errors.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        self._failed += 1

    def _state(self) -> ProgressState:
        return ProgressState(self._records, self._failed, self._bytes, self._total_bytes, None, 0)
