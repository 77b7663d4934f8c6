"""Runs stream operators: their items are written one after the other, and positions with them.

Items are settled together with the stream's position, at most a second apart, so that a run that
was killed goes on from there: the items are neither read nor written twice.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, fresh
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.positions import Position, without_stages
from dagster_dataops.checkpoints.publish.compose import Drafts
from dagster_dataops.checkpoints.resume.resume_policy import runs_of
from dagster_dataops.checkpoints.resume.stream_checkpoint import StreamCheckpoint, decide_stream
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import (
    OutageError,
    RunStoppedError,
    StreamItemError,
    StreamStateError,
    UnencodableError,
)
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.execution.runners.given_stream import GivenStream, as_reading
from dagster_dataops.execution.runners.quarantine import draft_errors
from dagster_dataops.hashing.values import digest
from dagster_dataops.operators.bound_methods import stream_function
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.spec import Invocation
from dagster_dataops.records import encode
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.files.file_stages import FileStage
from dagster_dataops.streams.positioned_stream import Reading
from dagster_dataops.streams.result_stream import Stored

_TICK_SECONDS: Final = 0.1
_STOP_CHECK_SECONDS: Final = 1.0
_SECOND: Final = 1.0  # what a kill may cost
_SHARE: Final = 50  # at most 1/50 of the run is spent on positions
_BUFFER_BYTES: Final = 256 << 10
_FORMAT: Final = 2  # of positions


def stream_of(operator: Operator, datasets: Sequence[JsonlDataset]) -> Reading:
    """Return the stream of an operator over its inputs, at its start.

    Raises:
        StreamDefinitionError: It returns no stream, or one that never ends.
    """
    if isinstance(operator, GivenStream):
        return operator.stream()
    made = stream_function(operator)(*[dataset.stream() for dataset in datasets])
    return as_reading(made, operator.__dataops__.spec.qualified_name)


def stream_fingerprint(invocation: Invocation, stream: Reading) -> RunFingerprint:
    """Return the fingerprint of writing ``stream``.

    Results that it reads count by their whole content, files of others by what the file system
    knows of them as well: the ends of a file may stay as they were. A seed that was drawn counts
    for nothing: it goes with the position, and what goes on goes on with it.

    Raises:
        StreamSourceError: A source cannot be read.
    """
    own = RunFingerprint.of(invocation, "")
    parts = stream.parts
    of = {aspect: [one.get(aspect) for one in parts] for aspect in ("options", "code", "data")}
    options = digest([own.options, of["options"], stream.given_seeds])
    return RunFingerprint(
        format=f"{own.format}-{_FORMAT}",
        operator=own.operator,
        options=own.options if own.unknown else options,
        code=digest([own.code, [one["stage"] for one in parts], of["code"]]),
        input=digest([of["data"], [_stamps(stage) for stage in stream.stage.ordered()]]),
    )


def _stamps(stage: Stage) -> list[list[int] | None]:
    if isinstance(stage, Stored) or not isinstance(stage, FileStage):
        return []
    return [location.stamp() for location in stage.files.locations()]


@dataclass(frozen=True)
class Flow:
    """A stream that is to be written.

    Attributes:
        name: Qualified name of its operator.
        stream: At its start.
        fingerprint: Of writing it.
    """

    name: str
    stream: Reading
    fingerprint: RunFingerprint

    @classmethod
    def of(cls, operator: Operator, datasets: Sequence[JsonlDataset]) -> "Flow":
        """Return the flow of an operator over its inputs."""
        invocation = operator.__dataops__
        stream = stream_of(operator, datasets)
        fingerprint = stream_fingerprint(invocation, stream)
        return cls(invocation.spec.qualified_name, stream, fingerprint)

    def checkpoint(
        self, context: RunContext, folder: NodeFolder, found: list[CheckpointContent]
    ) -> "tuple[StreamCheckpoint, Reading, str | None]":
        """Return the checkpoint to write to, the stream where it goes on, and what to tell."""
        stages = self.stream.parts
        decision = decide_stream(folder, found, self.fingerprint, stages, context.resume)
        content, note = decision.content, decision.note
        refused = ""
        place = StreamCheckpoint.quarantine_of(content.folder)
        for position in decision.positions:
            StreamCheckpoint.cut_quarantine(content.folder, position)
            stream = self.stream.anew(place)
            try:
                stream.load_state_dict(position.state_of(stages))
            except StreamStateError as error:
                refused = f"starting afresh: no position of the run before can be used: {error}"
                continue
            told = f"resuming: {position.items:,} items settled by {runs_of(content)}"
            told = f"{told}; {note}" if note else told
            return self._made(context, content, position), stream, told
        content = fresh(folder.checkpoints)
        place = StreamCheckpoint.quarantine_of(content.folder)
        return self._made(context, content, None), self.stream.anew(place), refused or note

    def _made(
        self, context: RunContext, content: CheckpointContent, position: Position | None
    ) -> StreamCheckpoint:
        return StreamCheckpoint(
            content,
            self.fingerprint,
            context.run,
            context.flush_seconds,
            self.stream.parts,
            position,
        )


class StreamWriter:
    """Writes the rest of a stream to its checkpoint.

    Args:
        name: Of the stream, for errors.
        stream: Where it goes on.
        checkpoint: Where it is written to.
        context: How this attempt is made.
    """

    def __init__(
        self, name: str, stream: Reading, checkpoint: StreamCheckpoint, context: RunContext
    ) -> None:
        self._name = name
        self._stream = stream
        self._checkpoint = checkpoint
        self._context = context
        self._pause = min(context.flush_seconds, _SECOND)
        self._next_settling = time.monotonic() + self._pause
        self._next_stop_check = 0.0
        self._written = checkpoint.items

    def state(self) -> ProgressState:
        """Return how far it is; how far it has to go nobody knows."""
        checkpoint = self._checkpoint
        return ProgressState(
            self._written, self._stream.errors, 0, 0, None, checkpoint.resumed_records
        )

    def run(self) -> None:
        """Write until the stream has ended, and settle all of it.

        Raises:
            StreamItemError: An item is no record.
            RunStoppedError: Somebody asked to stop; what is there is settled.
        """
        self._write(iter(self._stream))
        self._settle(time.monotonic())

    def check_any_item(self) -> None:
        """Refuse to publish if items failed and no item came through.

        Raises:
            OutageError: So it is.
        """
        failed = self._stream.errors
        if self._written or not failed:
            return
        example = "The log says what they failed with."
        for entry in self._stream.quarantined[:1]:
            example = f"The first: {entry['exception']}: {entry['message']}"
        raise OutageError(self._name, f"no item came through and {failed:,} failed", example)

    def _write(self, items: Iterator[Any]) -> None:
        clock, written = time.monotonic, self._written
        next_tick = clock() + _TICK_SECONDS
        buffer = bytearray()
        for item in items:
            try:
                line = encode(item) if type(item) is dict else self._encoded(item, written)
            except UnencodableError as error:
                reason = f"cannot be written: {error}"
                raise StreamItemError(self._name, written, reason) from None
            buffer += line
            written += 1
            now = clock()
            if now >= next_tick or len(buffer) >= _BUFFER_BYTES:
                self._checkpoint.write(buffer)
                self._written = written
                buffer = bytearray()
                if now >= next_tick:
                    next_tick = now + _TICK_SECONDS
                    self._tick()
        self._checkpoint.write(buffer)
        self._written = written

    def _encoded(self, item: object, index: int) -> bytes:
        if not isinstance(item, dict):
            reason = (
                f"is a {type(item).__name__}, and a result holds dicts; add a `.map(...)` that "
                "makes one of it"
            )
            raise StreamItemError(self._name, index, reason)
        return encode(item)

    def _tick(self) -> None:
        now = time.monotonic()
        if now >= self._next_settling:
            self._settle(now)
        self._checkpoint.sync_if_due(now)
        self._context.progress.update(self.state())
        if now >= self._next_stop_check:
            self._next_stop_check = now + _STOP_CHECK_SECONDS
            reason = self._context.should_stop()
            if reason is not None:
                self._settle(now)
                raise RunStoppedError(self._name, reason)

    def _settle(self, now: float) -> None:
        self._checkpoint.settle_items(self._written, without_stages(self._stream.state_dict()))
        spent = time.monotonic() - now
        self._next_settling = now + max(self._pause, spent * _SHARE)

    def drafts(self, folder: NodeFolder) -> Drafts:
        """Make the drafts of what is settled."""
        failed = self._stream.errors
        self._checkpoint.check_quarantine()
        dataset, modified_ns = self._checkpoint.draft(folder.result)
        draft_errors(self._checkpoint.quarantine, folder.errors)
        items = dataset.rows or 0
        return Drafts(dataset, modified_ns, records=items + failed, failed=failed)
