"""Runs dataset operators: everything in, everything out, in the caller's thread.

An input annotated as an iterable is streamed, and a result that is an iterator is written as it
comes, so that such an operator holds no more than it wants to; lists are lists.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import orjson

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.journal.failed_place import failed_records
from dagster_dataops.checkpoints.publish.compose import Drafts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.datasets.lines import Line, LineCounter, content_interval, iterate_lines
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.errors import (
    DatasetOperatorError,
    OutageError,
    RecordError,
    RunStoppedError,
    UnencodableError,
)
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.records.record_failures import (
    Failed,
    Failure,
    error_line,
    failure_of,
)
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.operators.bound_methods import dataset_function
from dagster_dataops.operators.operator import Operator
from dagster_dataops.records import Record, decode, encode

_TICK_SECONDS: Final = 0.1


def run_whole(
    operator: Operator, datasets: Sequence[JsonlDataset], folder: NodeFolder, context: RunContext
) -> Drafts:
    """Run a dataset operator and write its result and error file as drafts.

    Raises:
        DatasetOperatorError: It raised, or returned something that is no dataset.
        RecordError: An input line is no record and failures are not ignored.
        OutageError: No input line is a record.
    """
    with (
        storage(folder.path, "write the result"),
        JsonlWriter(folder.result) as results,
        JsonlWriter(folder.errors) as errors,
    ):
        return _Whole(operator, folder, context, results, errors).run(datasets)


class _Whole:
    def __init__(
        self,
        operator: Operator,
        folder: NodeFolder,
        context: RunContext,
        results: JsonlWriter,
        errors: JsonlWriter,
    ) -> None:
        self._operator = operator
        self._folder = folder
        self._context = context
        self._results = results
        self._errors = errors
        self._name = operator.__dataops__.spec.qualified_name
        self._settings = operator.__dataops__.resolved
        self._first_refused = ""
        self._drafts = Drafts()
        self._bytes = 0
        self._total_bytes = 0
        self._next_tick = 0.0

    def run(self, datasets: Sequence[JsonlDataset]) -> Drafts:
        self._total_bytes = sum(dataset.size_bytes for dataset in datasets)
        drafts = self._drafts
        self._context.progress.start(self._folder.name, self._state())
        try:
            for record in self._checked(self._called(datasets)):
                self._results.write(record)
                self._tick()
        finally:
            self._context.progress.finish(self._state())
        self._check_any_succeeded()
        drafts.dropped = max(0, drafts.records - drafts.failed - self._results.rows)
        drafts.finish(self._results, self._errors)
        return drafts

    def _check_any_succeeded(self) -> None:
        drafts, allowed = self._drafts, not self._settings.stop_after_failures
        if self._first_refused and drafts.failed == drafts.records and not allowed:
            found = f"no line of its input is a record ({drafts.failed:,} lines)"
            raise OutageError(self._name, found, f"The first: {self._first_refused}")

    def _called(self, datasets: Sequence[JsonlDataset]) -> Iterator[object]:
        """Yield what the operator returns, one by one."""
        streamed = self._operator.__dataops__.spec.streamed
        sources = [self._records(dataset) for dataset in datasets]
        given = [
            source if lazily else list(source)
            for source, lazily in zip(sources, streamed, strict=True)
        ]
        try:
            yield from self._iterable(dataset_function(self._operator)(*given))
        except GeneratorExit:  # the result cannot be written; nobody asks for more of it
            raise
        except self._context.interrupts:
            raise
        except (DatasetOperatorError, RecordError, RunStoppedError):
            raise
        except BaseException as error:
            failure = failure_of(error)
            reason = f"{failure.exception}: {failure.message}"
            raise DatasetOperatorError(self._name, reason, failure.traceback_text) from error

    def _iterable(self, returned: object) -> Iterable[object]:
        if isinstance(returned, (dict, str, bytes)) or not isinstance(returned, Iterable):
            kind = type(returned).__name__
            reason = f"it returned a {kind}; return a list of dicts, or an iterator of them"
            raise DatasetOperatorError(self._name, reason, "")
        return returned

    def _checked(self, returned: Iterator[object]) -> Iterator[bytes]:
        for position, record in enumerate(returned):
            if not isinstance(record, dict):
                kind = type(record).__name__
                reason = f"element {position} of its result is a {kind}, not a dict"
                raise DatasetOperatorError(self._name, reason, "")
            try:
                yield encode(record)
            except UnencodableError as error:
                reason = f"element {position} of its result: {error}"
                raise DatasetOperatorError(self._name, reason, "") from None

    def _records(self, dataset: JsonlDataset) -> Iterator[Record]:
        """Yield the records of an input; lines that are none go to the error file."""
        with dataset.path.open("rb") as file:
            counter = LineCounter(file.fileno())
            lines = iterate_lines(file.fileno(), [content_interval(dataset.path)])
            for index, line in zip(itertools.count(), lines, strict=False):
                self._drafts.records += 1
                self._bytes += line.end - line.start
                self._tick()
                try:
                    record = decode(line.text)
                except ValueError as error:
                    self._refuse(dataset, index, counter.line_at(line.start), line, str(error))
                else:
                    yield record

    def _refuse(
        self, dataset: JsonlDataset, index: int, number: int, line: Line, reason: str
    ) -> None:
        self._first_refused = self._first_refused or f"{dataset.path}, line {number}: {reason}"
        if not self._settings.ignore_errors:
            raise RecordError(
                self._name, index, str(dataset.path), number, "InvalidLine", reason, ""
            )
        failed = Failed(line.start, line.text, Failure("InvalidLine", reason, ""))
        (record,) = failed_records(error_line(failed, self._name))
        row = {"index": index, "path": str(dataset.path), "line": number, **record.told}
        self._errors.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        self._drafts.failed += 1

    def _state(self) -> ProgressState:
        drafts = self._drafts
        return ProgressState(drafts.records, drafts.failed, self._bytes, self._total_bytes, None, 0)

    def _tick(self) -> None:
        now = time.monotonic()
        if now < self._next_tick:
            return
        self._next_tick = now + _TICK_SECONDS
        self._context.progress.update(self._state())
        reason = self._context.should_stop()
        if reason is not None:
            raise RunStoppedError(self._name, reason)
