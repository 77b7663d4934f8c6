"""StreamRunner: write the items of a stream, and journal them with the position of the stream.

Positions are at most a second apart. A killed run continues at the last one: the items before it
are neither read nor written again.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint, is_unknown
from dagster_dataops.checkpoints.journal.positions import Position, StageParts, without_stages
from dagster_dataops.checkpoints.journal.segments import SEND_BYTES
from dagster_dataops.checkpoints.publish.compose import compose_stream
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.checkpoints.publish.record_summary import RecordSummary
from dagster_dataops.checkpoints.stream_checkpoint import StreamCheckpoint, quarantine_of
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.file_keeper import FileKeeper
from dagster_dataops.datasets.file_values.file_reads import (
    FileReadLog,
    check_unchanged,
    first_replaced,
    noted_reads,
)
from dagster_dataops.errors import (
    OutageError,
    RunStoppedError,
    StreamItemError,
    StreamStateError,
    UnencodableError,
)
from dagster_dataops.execution.input_facts import path_of
from dagster_dataops.execution.node_attempt import NodeAttempt, synced_on_failure
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.runners.given_stream import GivenStream, as_reading
from dagster_dataops.execution.runners.runner import Runner
from dagster_dataops.execution.ticker import Ticker
from dagster_dataops.foundation.hashing.values import digest, end_of_rules
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.bound_methods import plain_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec import Invocation
from dagster_dataops.records import encode
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.files.file_stages import FileStage
from dagster_dataops.streams.item_origins import describe
from dagster_dataops.streams.positioned_stream import PositionedStream
from dagster_dataops.streams.result_stream import ResultRecords

_TICK_SECONDS: Final = 0.1
_SECOND: Final = 1.0  # seconds of work that a kill may cost
_SHARE: Final = 50  # share of the run that may be spent on positions
_BUFFER_BYTES: Final = 256 << 10
_LOOK_SECONDS: Final = 0.02


def stream_of(operator: Operator, datasets: Sequence[JsonlDataset]) -> PositionedStream:
    """Return the stream of an operator over its inputs, at its start.

    Raises:
        StreamDefinitionError: The operator did not return a stream, or the stream never ends.
    """
    if isinstance(operator, GivenStream):
        return operator.stream()
    stream = plain_function(operator)(*[dataset.stream() for dataset in datasets])
    return as_reading(stream, operator.__dataops__.spec.qualified_name)


def stream_fingerprint(invocation: Invocation, stream: PositionedStream) -> RunFingerprint:
    """Return the fingerprint of writing ``stream``.

    Published results that it reads count by their content. Other files also count by size and
    times, because only samples of their content are compared. A randomly generated seed does not
    count: it is part of the position, and a resumed stream continues with it.

    Raises:
        StreamSourceError: A source cannot be read.
    """
    alone = RunFingerprint.of(invocation, "")
    parts = stream.parts
    of = {aspect: [part.get(aspect) for part in parts] for aspect in ("options", "code", "data")}
    options = digest([alone.options, of["options"], stream.given_seeds])
    code = digest([alone.code, [part["stage"] for part in parts], of["code"]])
    codes = [alone.code, *filter(None, of["code"])]
    return RunFingerprint(
        format=alone.format,
        operator=alone.operator,
        options=_joined(alone.options, options, [alone.options]),
        code=_joined(alone.code, code, codes),
        input=digest([of["data"], [_stamps(stage) for stage in stream.stage.ordered()]]),
        earlier=partial(_earlier, alone, stream),
        files=alone.files,
    )


def _joined(alone: str, joined: str, parts: Sequence[str]) -> str:
    """Return a digest of operator and stages; that of the operator alone if it is unknown."""
    return alone if is_unknown(alone) else joined + end_of_rules(parts)


def _earlier(alone: RunFingerprint, stream: PositionedStream, part: str) -> str:
    """Return the digest of options or code that version 0.2 had; empty if it left more out."""
    known, parts = alone.earlier(part), stream.parts
    if part == "options":
        options = [part.get("options") for part in parts]
        return known and digest([known, options, stream.given_seeds])
    codes = stream.earlier_codes
    if not all(code for code, part in zip(codes, parts, strict=True) if "code" in part):
        return ""
    stages = [part["stage"] for part in parts]
    return known and digest([known, stages, [code or None for code in codes]])


def _stamps(stage: Stage) -> list[list[int] | None]:
    if isinstance(stage, ResultRecords) or not isinstance(stage, FileStage):
        return []
    return [location.stamp() for location in stage.files.locations()]


class StreamRunner(Runner):
    """Runs stream operators."""

    def __init__(self, operator: Operator, inputs: Sequence[JsonlDataset]) -> None:
        for dataset in inputs:
            dataset.check_content()
        self._given = stream_of(operator, inputs)
        self._reading = self._given
        self.stream = self
        self.fingerprint = stream_fingerprint(operator.__dataops__, self._given)

    @property
    def parts(self) -> StageParts:
        """The stages of the stream."""
        return self._given.parts

    def as_present(self, stages: Any) -> Any:
        """Return stored stages; those that version 0.2 would have stored are the present ones."""
        return self._given.as_present(stages)

    def restore(self, folder: Path, position: Position) -> str:
        """Continue at a position of the checkpoint in ``folder``; return why not if it fails."""
        self._reading = self._given.fresh_copy(quarantine_of(folder))
        try:
            self._reading.load_state_dict(position.state_of(self.parts))
        except StreamStateError as error:
            return str(error)
        return first_replaced(folder) if noted_reads(folder) else ""

    @override
    def run(self, attempt: NodeAttempt) -> Drafts:
        """Write the rest of the stream and compose the result."""
        context, start = attempt.context, attempt.start
        if start.position is None:
            self._reading = self._given.fresh_copy(quarantine_of(start.content.folder))
        checkpoint = attempt.open_checkpoint(
            StreamCheckpoint(
                start.content,
                self.fingerprint,
                context.run,
                context.flush_seconds,
                self.parts,
                start.position,
                open_journal=attempt.lock.journal,
            )
        )
        stream = self._reading
        stream.hide_in_failures(attempt.operator.__dataops__.secrets.hide)
        keeper = attempt.operator.__dataops__.keeper
        writer = _StreamWriter(attempt.name, stream, checkpoint, context.flush_seconds, keeper)
        with attempt.shown(writer.state) as ticker:
            with synced_on_failure(checkpoint), FileReadLog(checkpoint.folder) as writer.reads:
                writer.run(ticker)
                if attempt.settings.stop_after_failures:
                    writer.check_any_item()
            attempt.check_inputs_unchanged()
            check_unchanged(checkpoint.folder)
        paths = [path_of(source.location) for source in attempt.inputs]
        combined = describe(stream.stage, paths, stream.seeds)
        traced = combined if attempt.settings.trace else None
        hide = attempt.operator.__dataops__.secrets.hide
        drafts = compose_stream(attempt.folder, checkpoint, stream.errors, hide)
        summary = RecordSummary(counts=noted_reads(checkpoint.folder))
        return replace(
            drafts,
            seeds=stream.seeds,
            combined=traced or {},
            leaves=stream.leaves,
            summary=summary,
        )


class _StreamWriter:
    """Writes the rest of a stream to its checkpoint."""

    reads: FileReadLog

    def __init__(
        self,
        name: str,
        stream: PositionedStream,
        checkpoint: StreamCheckpoint,
        flush_seconds: float,
        keeper: FileKeeper | None,
    ) -> None:
        self._keeper = keeper
        self._name = name
        self._stream = stream
        self._checkpoint = checkpoint
        self._pause = min(flush_seconds, _SECOND)
        self._next_journaling = time.monotonic() + self._pause
        self._written = checkpoint.items

    def state(self) -> ProgressState:
        """Return the progress; the total is not known."""
        checkpoint = self._checkpoint
        return ProgressState(
            self._written, self._stream.errors, 0, 0, None, checkpoint.resumed_records
        )

    def run(self, ticker: Ticker) -> None:
        """Write until the stream has ended, and journal all items."""
        self._write(iter(self._stream), ticker)
        self._journal(time.monotonic())

    def check_any_item(self) -> None:
        """Check that at least one item succeeded if any failed."""
        failed = self._stream.errors
        if self._written or not failed:
            return
        example = "The log contains their exceptions."
        for entry in self._stream.quarantined[:1]:
            example = f"The first: {entry['exception']}: {entry['message']}"
        raise OutageError(
            self._name, f"{counted(failed, 'items')} failed, and none succeeded", example
        )

    def _write(self, items: Iterator[Any], ticker: Ticker) -> None:
        clock, written, keeper = time.monotonic, self._written, self._keeper
        next_tick = clock() + _TICK_SECONDS
        buffer = bytearray()
        for item in items:
            try:
                line = encode(item, keeper) if type(item) is dict else self._encoded(item, written)
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
                    self._tick(now, ticker)
                self._await_room(ticker)
        self._checkpoint.write(buffer)
        self._written = written

    def _await_room(self, ticker: Ticker) -> None:
        """Wait while many lines are not in the store of the results, if they are in one."""
        checkpoint = self._checkpoint
        if checkpoint.sends and checkpoint.unsettled_bytes >= SEND_BYTES:
            self._journal(time.monotonic())  # only settled lines are sent
        while checkpoint.full:
            ticker.tick_at(time.monotonic())
            time.sleep(_LOOK_SECONDS)

    def _encoded(self, item: object, index: int) -> bytes:
        if not isinstance(item, dict):
            reason = (
                f"is a {type(item).__name__}, and a result holds dicts; add a `.map(...)` that "
                "makes one of it"
            )
            raise StreamItemError(self._name, index, reason)
        return encode(item, self._keeper)

    def _tick(self, now: float, ticker: Ticker) -> None:
        if now >= self._next_journaling:
            self._journal(now)
        try:
            ticker.tick_at(now)
        except RunStoppedError:
            self._journal(now)
            raise

    def _journal(self, now: float) -> None:
        if self._keeper is not None:
            self._keeper.sync()
        self.reads.write()
        self._checkpoint.journal_items(self._written, without_stages(self._stream.state_dict()))
        spent = time.monotonic() - now
        self._next_journaling = now + max(self._pause, spent * _SHARE)
