"""Stages: parts of a step over a whole dataset, whose tasks run where the records of a node run.

The tasks of a stage are the records of a dataset of its own, with a checkpoint of its own in the
folder of the step's checkpoint. So a task runs in a worker process, or on an agent, like records
do; it is settled when it is finished, and a later run does not repeat it.
"""

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from typing_extensions import override

from dagster_dataops.checkpoints.checkpoint import Checkpoint, CheckpointContent
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.errors import DatasetOperatorError, RecordError, StorageError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.node_attempt import synced_on_failure
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.runners.part_files import DamagedPartError
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.workplace import run_workplace
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from dagster_dataops.operators.kinds.kind_table import RECORD
from dagster_dataops.operators.options.settings import ALLOWED, ExecutionSettings
from dagster_dataops.operators.pickling import receive, ship
from dagster_dataops.records import Record

Task = Callable[[Record], None]


class SentOperator:
    """An operator that is pickled as workers get operators.

    Attributes:
        operator: The operator.
    """

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    @override
    def __reduce__(self) -> Any:
        return _received, (ship(self.operator),)


def _received(payload: bytes) -> SentOperator:
    return SentOperator(receive(payload))


class Stages:
    """Runs the stages of a step.

    Args:
        sink: Of the step. Its checkpoint holds the files of the stages.

    Attributes:
        folder: An own folder, for the files of the tasks. It is deleted with the checkpoint.
    """

    def __init__(self, sink: CheckpointSink) -> None:
        self._sink = sink
        self.folder = sink.checkpoint.folder / "partitions"

    def run(self, name: str, task: Task, records: Iterable[Record]) -> None:
        """Run the tasks of a stage that no earlier run has finished.

        Args:
            name: Of the stage, for its folder.
            task: Does one task, and writes its result to files that it replaces whole.
            records: Describe the tasks.

        Raises:
            DatasetOperatorError: A task failed.
            DamagedPartError: A file of an earlier stage is damaged.
            RunStoppedError: A stop was requested.
        """
        outer = self._sink.attempt
        folder = self.folder / name
        before = CheckpointContent.read(folder)
        tasks = write_records(folder / "tasks.jsonl", records, name, scratch=True)
        fingerprint = self._sink.checkpoint.content.fingerprint
        assert fingerprint is not None  # noqa: S101 - an attempt has begun
        fingerprint = replace(fingerprint, input=tasks.identity)
        if before.fingerprint != fingerprint:  # of other tasks, or cut off
            (folder / "journal").unlink(missing_ok=True)
            before = CheckpointContent(folder, None, [], SpanTable())
        with ExitStack() as resources:
            attempt = replace(
                outer,
                operator=_stage_operator(outer.operator, task, local=self._local),
                inputs=[tasks],
                stamps=[tasks.stamp()],
                read_ns=time.time_ns(),
                resources=resources,
                checkpoint=None,
                gpus=(),
            )
            checkpoint = Checkpoint(
                before, fingerprint, outer.context.run, outer.context.flush_seconds
            )
            sink = _StageSink(self._sink, attempt, WorkList(attempt.operator, tasks), checkpoint)
            sink.work.open = checkpoint.table.gaps(sink.work.content)
            with synced_on_failure(checkpoint):
                self._run(sink)

    @property
    def _local(self) -> bool:
        """Whether agents cannot see the files: the journal is kept in a store."""
        return type(self._sink.checkpoint.segments) is not Segments

    def _run(self, sink: CheckpointSink) -> None:
        try:
            if sink.work.open:
                run_workplace(sink)
            sink.check_complete()
        except RecordError as error:
            if error.exception == DamagedPartError.__name__:
                raise DamagedPartError(error.message) from None
            if error.exception == StorageError.__name__:
                raise StorageError(str(self.folder), "process a partition", error.message) from None
            reason = f"{error.exception}: {error.message}"
            raise DatasetOperatorError(error.operator, reason, error.traceback_text) from None

    def forget(self) -> None:
        """Delete the files, so that the step is repeated from its sketches."""
        shutil.rmtree(self.folder, ignore_errors=True)


class _StageSink(CheckpointSink):
    """Shows the progress of the whole step."""

    def __init__(self, outer: CheckpointSink, *arguments: Any) -> None:
        self._outer = outer
        super().__init__(*arguments)

    @override
    def state(self) -> ProgressState:
        return self._outer.state()


class StageOperator(Operator):
    """Does the tasks of a stage.

    Attributes:
        task: Does one task.
    """

    task: Task

    def forward(self, record: Record) -> Record:
        """Do the task that a record describes."""
        self.task(record)
        return record


def _stage_operator(outer: Operator, task: Task, *, local: bool) -> StageOperator:
    """Return the operator of a stage; it has the workers of the operator of the step."""
    settings, spec = outer.__dataops__.resolved, outer.__dataops__.spec
    separate = settings.concurrency_mode == "process"
    inner = ExecutionSettings(
        concurrency_mode="process" if separate else "single",
        max_workers=settings.max_workers if separate else 1,
        ignore_errors=False,
        missing=ALLOWED,
        agents=False if local or settings.agents is False else None,
    )
    operator: StageOperator = object.__new__(StageOperator)
    inner_spec = OperatorSpec(
        group=spec.group,
        name=spec.name,
        kind=RECORD,
        target=StageOperator,
        options=(),
        any_option=False,
        settings=inner,
        inputs=1,
        streamed=(),
        asynchronous=False,
    )
    operator.__dataops__ = Invocation(spec=inner_spec, options={}, settings=inner)
    operator.task = task
    return operator
