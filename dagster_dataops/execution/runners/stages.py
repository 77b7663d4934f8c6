"""Stages: parts of a step over a whole dataset, whose tasks run where the records of a node run.

The tasks of a stage are the records of a dataset of its own, with a checkpoint of its own in the
folder of the step's checkpoint. So a task runs in a worker process, or on an agent, like records
do; it is settled when it is finished, and a later run does not repeat it.
"""

import shutil
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar, cast

import orjson
from xxhash import xxh3_128_hexdigest

from dagster_dataops.checkpoints.checkpoint import Checkpoint, CheckpointContent
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.segment_reader import joined_outputs
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.journal.sent_pieces import SentPlace
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import storage, sync_folder
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.errors import DatasetOperatorError, RecordError, StorageError
from dagster_dataops.execution.agent_pool import AgentEnvironment
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.node_attempt import NodeAttempt, synced_on_failure
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.runners.part_files import (
    DamagedPartError,
    PartsFile,
    PartsFolder,
    file_name,
    is_whole,
    remove,
)
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.workplace import cluster_for, run_workplace
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import BucketFile, Location
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_range
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from dagster_dataops.operators.kinds.kind import Inputs
from dagster_dataops.operators.kinds.kind_table import RECORD
from dagster_dataops.operators.options.settings import ALLOWED, ExecutionSettings
from dagster_dataops.operators.pickling import receive, ship
from dagster_dataops.records import Record, decode_own

RANGE: Final = "range"  # the kind of the files of the first stage: one for a range of an input
LEAST_SENT_BYTES: Final = 256 << 20  # of less, starting agents takes longer than the work
_LEAST_RANGE: Final = 1 << 20
_WORKER_BYTES: Final = 7 << 20  # of an idle worker, beside what it shares with its parent
_LIMIT_SHARE: Final = 2  # the rest of the limit of a worker is for what is not counted
_RANGES_IN_MEMORY: Final = 8  # a decoded range takes several times its bytes
_MOST_REPAIRS: Final = 2
_OF_MEMORY: Final = ("WorkerDied", MemoryError.__name__)
_MEMORY_ADVICE: Final = (
    ". If memory ran out, lower max_memory_mb or _max_workers, or give the run more memory; then "
    "run again"
)

Returned = TypeVar("Returned")


class SentOperator:
    """An operator that is pickled as workers get operators."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    @override
    def __reduce__(self) -> Any:
        return _received, (ship(self.operator),)


def _received(payload: bytes) -> SentOperator:
    return SentOperator(receive(payload))


@dataclass(frozen=True)
class StageTask(ABC):
    """Does the tasks of a stage; it is sent to workers.

    Attributes:
        kind: The kind of the files that it writes.
        sent: The operator of the step.
        folder: For the files of the tasks.
    """

    kind: ClassVar[str]
    sent: SentOperator
    folder: PartsFolder

    def __call__(self, task: Record) -> Record:
        """Do a task, unless an object in a bucket tells that it is done.

        Returns:
            What the run needs to know of the task.
        """
        file = self.folder.file(self.kind, cast("int", task["number"]))
        if isinstance(file, BucketFile):
            with suppress(DamagedPartError):  # it is not done, or must be done again
                return self.returned(PartsFile(file))
        return self.do(task, file)

    @abstractmethod
    def do(self, task: Record, file: Location) -> Record:
        """Do a task, and write its file of parts; return what the run needs to know."""

    def returned(self, parts: PartsFile) -> Record:  # noqa: ARG002
        """Return what `do` returned for a task, by its file; by default nothing."""
        return {}


def parts_folder(attempt: NodeAttempt, path: Path, size: int) -> PartsFolder:
    """Return the folder for the files of the stages of a step.

    They are in the bucket if that is all that agents share. Little work is done sooner by the
    processes of this machine, and so is work on a file that may be on this machine alone: only a
    selection has read its input on the agents before.

    Args:
        attempt: Of the step.
        path: The folder on this machine.
        size: The bytes that are put into partitions.
    """
    cluster = cluster_for(attempt.settings, attempt.context.cluster)
    if cluster is None or size < LEAST_SENT_BYTES:
        return PartsFolder(path)
    whole = attempt.operator.__dataops__.spec.kind.inputs is Inputs.DATASETS
    if whole and any(isinstance(dataset.location, Path) for dataset in attempt.inputs):
        return PartsFolder(path)
    place = attempt.lock.sent_place()
    return PartsFolder(path, None if place is None else BucketFile(place.bucket, place.parts))


def is_shared(attempt: NodeAttempt) -> bool:
    """Return whether agents see the folder of the node.

    That of a node in a bucket is on this machine alone.
    """
    return type(attempt.lock.segments(attempt.folder.checkpoints)) is Segments


class Stages:
    """Runs stages one after the other, and keeps the files of their tasks in one folder.

    Args:
        attempt: Of the step.
        folder: For the files of the tasks; its folder on this machine, which also has the journals
            of the stages, is deleted with the checkpoints of the node.
        fingerprint: Of the step.
        state: Returns the progress of the step.
        checkpoint: Of the step, if it has one; it is synced while stages run.
    """

    def __init__(
        self,
        attempt: NodeAttempt,
        folder: PartsFolder,
        fingerprint: RunFingerprint,
        state: Callable[[], ProgressState],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._attempt, self.folder = attempt, folder
        self._fingerprint, self._state = fingerprint, state
        self._before = ""  # the digest of the stages that have run
        self._checkpoint = checkpoint

    @classmethod
    def of(cls, sink: CheckpointSink) -> "Stages":
        """Return the stages of a step over settled records; the files are in its checkpoint."""
        checkpoint = sink.checkpoint
        fingerprint = checkpoint.content.fingerprint
        assert fingerprint is not None  # noqa: S101 - an attempt has begun
        size = sum(checkpoint.table.column("output_bytes"))
        folder = parts_folder(sink.attempt, checkpoint.folder / "partitions", size)
        return cls(sink.attempt, folder, fingerprint, sink.state, checkpoint)

    def shared(self, location: Location) -> Location:
        """Return where the workers of the stages read an input.

        Raises:
            StorageError: It cannot be sent to the bucket.
        """
        if self.folder.objects is None:
            return location
        return self._attempt.lock.shared_input(location)

    @property
    def workers(self) -> int:
        """The number of processes that share the tasks."""
        settings = self._attempt.settings
        return settings.max_workers if settings.concurrency_mode == "process" else 1

    def memory(self, max_bytes: int) -> int:
        """Return the bytes of memory for a partition.

        Args:
            max_bytes: Memory that all processes together may use, with what a worker takes itself.
        """
        limit = self._attempt.settings.max_worker_memory_mb << 20
        share = max_bytes // self.workers
        share = max(share // 2, share - _WORKER_BYTES)
        return min(share, limit // _LIMIT_SHARE) if limit else share

    def range_bytes(self, memory: int, most: int) -> int:
        """Return the size of ranges of an input of which each fits in memory when it is decoded."""
        return min(most, max(_LEAST_RANGE, memory // _RANGES_IN_MEMORY))

    def run(
        self,
        name: str,
        task: StageTask,
        records: Iterable[Record],
        identity: object = None,
    ) -> list[Record]:
        """Run the tasks of a stage that no earlier run has finished, or whose files are damaged.

        Args:
            name: Of the stage, for its folder.
            task: Does one task, and writes its result to a file of parts.
            records: Describe the tasks; each has its number.
            identity: What the tasks depend on besides, such as the number of partitions.

        Returns:
            What the tasks returned, in their order.

        Raises:
            DatasetOperatorError: A task failed.
            DamagedPartError: A file of an earlier stage, or the checkpoint of this one, is damaged.
            StorageError: The disk is full, or cannot be read or written.
            RunStoppedError: A stop was requested.
        """
        folder, kind = self.folder.path / name, task.kind
        for pattern in (".*", "scratch-*"):  # what killed tasks have left
            for left in self.folder.path.glob(pattern):
                remove(left)
        tasks = write_records(folder / "tasks.jsonl", records, name, scratch=True)
        source = f"{self._fingerprint.input} {tasks.fingerprint} {identity!r} {self._before}"
        fingerprint = replace(self._fingerprint, input=source)
        self._before = xxh3_128_hexdigest(orjson.dumps(fingerprint.to_json()))
        made_by = AgentEnvironment.here(self._before)  # parts hold values of Python
        self.folder = self.folder.with_stage(kind, xxh3_128_hexdigest(repr(made_by).encode()))
        before = CheckpointContent.read(folder)
        if before.fingerprint != fingerprint or self.folder.objects is not None:
            before = CheckpointContent(
                folder=folder, fingerprint=None, attempts=[], table=SpanTable()
            )
            self._remove_old(folder, kind)
        before.table = before.table.without(self._lost(before.table, tasks, kind))
        with ExitStack() as resources:
            task = replace(task, folder=self.folder)
            sink = self._sink(task, tasks, resources, before, fingerprint)
            with synced_on_failure(sink.checkpoint):
                self._run(sink)
            return _results(sink.checkpoint)

    def end(self) -> None:
        """End the agents, which stay between stages; call it after the last one."""
        if self._attempt.context.cluster is not None:
            from dagster_dataops.execution.leases.staying_agents import release_agents

            release_agents(self._attempt)

    def _remove_old(self, folder: Path, kind: str) -> None:
        """Delete journal and files of other tasks, so that a power loss brings none back.

        A stage in a bucket always begins anew: each task looks for its object.
        """
        parts = self.folder.path
        with storage(parts, "delete files of an earlier run"):
            remove(folder / JOURNAL)
            for old in parts.glob(f"{kind}-*"):
                remove(old)
            sync_folder(folder)
            sync_folder(parts)

    def _lost(self, table: SpanTable, tasks: JsonlDataset, kind: str) -> list[int]:
        """Return the starts of the settled tasks whose files are damaged, and delete these."""
        damaged: dict[Path, int] = {}
        with opened(tasks.location) as source:
            for span, _, _ in table.ordered():
                lines = read_range(source, span.start, span.length).splitlines()
                numbers = [orjson.loads(line)["number"] for line in lines]
                files = [self.folder.path / file_name(kind, number) for number in numbers]
                damaged |= {file: span.start for file in files if not is_whole(file)}
        for file in damaged:
            remove(file)
        if damaged:
            files_of = counted(len(damaged), "files of partitions")
            self._attempt.note(f"{files_of} are damaged on disk; making them again")
        return list(damaged.values())

    def _sink(
        self,
        task: StageTask,
        tasks: JsonlDataset,
        resources: ExitStack,
        before: CheckpointContent,
        fingerprint: RunFingerprint,
    ) -> CheckpointSink:
        outer = self._attempt
        shared = is_shared(outer) or self.folder.objects is not None
        if not shared:  # no agent has work
            self.end()
        attempt = replace(
            outer,
            operator=_stage_operator(outer.operator, task, shared=shared),
            inputs=[tasks],
            stamps=[tasks.stamp()],
            read_ns=time.time_ns(),
            resources=resources,
            checkpoint=None,
            gpus=(),
        )
        context = outer.context
        checkpoint = Checkpoint(
            before, fingerprint, context.run, context.flush_seconds, outer.lock.journal_of_stage
        )
        work = WorkList(attempt.operator, tasks)
        work.open = checkpoint.table.gaps(work.content)
        return _StageSink(self._state, self._checkpoint, attempt, work, checkpoint)

    def _run(self, sink: CheckpointSink) -> None:
        try:
            if sink.work.open:
                run_workplace(sink)
            sink.check_complete()
        except RecordError as error:
            raise self._error(error) from None

    def _error(self, error: RecordError) -> Exception:
        """Return the error of the step after that of a task."""
        if error.exception == DamagedPartError.__name__:
            return DamagedPartError(error.message)
        if error.exception == _TaskStorageError.__name__:
            return StorageError(*orjson.loads(error.message))
        reason = f"{error.exception}: {error.message}"
        if error.exception in _OF_MEMORY:
            reason += _MEMORY_ADVICE
        return DatasetOperatorError(error.operator, reason, error.traceback_text)

    def forget(self) -> None:
        """Delete the files, so that the stages are repeated."""
        shutil.rmtree(self.folder.path, ignore_errors=True)


def _results(checkpoint: Checkpoint) -> list[Record]:
    damaged: list[int] = []
    outputs = joined_outputs(checkpoint.segments, checkpoint.table, damaged)
    records = [decode_own(line) for _, output in outputs for line in output.splitlines()]
    if damaged:
        raise DamagedPartError(str(checkpoint.folder))
    return records


def repaired(attempt: NodeAttempt, folder: PartsFolder, work: Callable[[], Returned]) -> Returned:
    """Do work that reads files of parts; if some are damaged, delete these and repeat it.

    Args:
        attempt: The attempt, whose log names them.
        folder: The folder of the stages.
        work: The work; it makes missing files again.

    Raises:
        StorageError: Files that were made again are damaged again.
    """
    for _ in range(1 + _MOST_REPAIRS):
        try:
            return work()
        except DamagedPartError as error:
            attempt.note(f"{error.path} is damaged or gone")
            folder.remove_damaged(error.path)
    reason = "files that were made again are damaged again; check the disk"
    raise StorageError(str(folder.path), "work in partitions", reason)


class _StageSink(CheckpointSink):
    """Shows the progress of the whole step, and syncs its checkpoint when that is due."""

    def __init__(
        self, state: Callable[[], ProgressState], of_step: Checkpoint | None, *arguments: Any
    ) -> None:
        self._state, self._of_step = state, of_step
        self._mark = uuid.uuid4().hex[:8]  # the step and other stages have the same segments
        super().__init__(*arguments)

    @override
    def sent_place(self) -> SentPlace | None:
        place = super().sent_place()
        return place and place._replace(mark=f"{place.mark}-{self._mark}")

    @override
    def tick(self) -> None:
        super().tick()
        if self._of_step is not None:
            self._of_step.sync_if_due(time.monotonic())

    @override
    def state(self) -> ProgressState:
        return self._state()


class _TaskStorageError(Exception):
    """A `StorageError` in a task; its text is the fields as JSON."""


class StageOperator(Operator):
    """Does the tasks of a stage."""

    task: StageTask

    def forward(self, record: Record) -> Record:
        """Do the task that a record describes."""
        try:
            return self.task(record)
        except StorageError as error:
            fields = [error.path, error.action, error.reason]
            raise _TaskStorageError(orjson.dumps(fields).decode()) from error


def _stage_operator(outer: Operator, task: StageTask, *, shared: bool) -> StageOperator:
    """Return the operator of a stage; it has the workers of the operator of the step."""
    use = outer.__dataops__
    settings, spec = use.resolved, use.spec
    separate = settings.concurrency_mode == "process"
    inner = ExecutionSettings(
        concurrency_mode="process" if separate else "single",
        max_workers=use.settings.max_workers if separate else 1,
        max_worker_memory_mb=settings.max_worker_memory_mb if separate else 0,
        ignore_errors=False,
        missing=ALLOWED,
        agents=None if shared and settings.agents is not False else False,
    )
    operator: StageOperator = object.__new__(StageOperator)
    inner_spec = OperatorSpec(
        group=spec.group,
        name=spec.name,
        kind=RECORD,
        target=StageOperator,
        settings=inner,
        inputs=1,
    )
    operator.__dataops__ = Invocation(spec=inner_spec, options={}, settings=inner)
    operator.task = task
    return operator
