"""GivenStream: wrap a stream as an operator without inputs, which is run and written like others.

The source of a pipeline can be a stream, a function that returns one, or an object that makes one.
"""

import copy
import os
import re
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.reader_base import Readable
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from dagster_dataops.operators.kinds.kind_table import STREAM
from dagster_dataops.operators.options.settings import ExecutionSettings

if TYPE_CHECKING:
    from dagster_dataops.streams.operations import Operations
    from dagster_dataops.streams.positioned_stream import PositionedStream

_SINGLE: Final = ExecutionSettings(concurrency_mode="single")


@runtime_checkable
class Streamed(Protocol):
    """An object that makes a stream, such as a reader."""

    name: str  # of its asset

    def stream(self) -> "Operations":
        """Return the stream, at its start."""


class GivenStream(Operator):
    """A stream as an operator without inputs; created by `given_stream`.

    Attributes:
        make: Returns the stream; called with the partition if there is one.
        partition: Key of the partition; ``None`` without partitions.
        limit: Number of items after which the stream ends; ``None`` for all.
        workers: Number of processes that read the stream; 0 for the process of the run alone.
    """

    make: Callable[..., object]
    partition: str | None = None
    limit: int | None = None
    workers: int = 0

    def stream(self) -> "PositionedStream":
        """Return the stream, at its start."""
        arguments = () if self.partition is None else (self.partition,)
        stream = self.make(*arguments)
        name = self.__dataops__.spec.name
        if self.limit is None:
            reading = as_reading(stream, name)
            return reading.workers(self.workers) if self.workers else reading
        return opened(stream, name).fresh_copy(limit=self.limit)


def given_stream(name: str, make: Callable[..., object], target: object = None) -> GivenStream:
    """Return an operator without inputs that writes the stream that ``make`` returns.

    Args:
        name: The name of the stream.
        make: Returns a stream, a builder of one, or an object that makes one; called with the key
            of the partition if there are partitions.
        target: The function whose code is part of the code version; ``None`` for only the stages.
    """
    operator: GivenStream = object.__new__(GivenStream)
    spec = OperatorSpec(
        group="stream",
        name=name,
        kind=STREAM,
        target=target or _given,
        settings=_SINGLE,
        inputs=0,
    )
    operator.__dataops__ = Invocation(spec=spec, options={}, settings=_SINGLE)
    operator.make = make
    return operator


def _given() -> None: ...


def of_partition(operator: Operator, partition: str | None) -> Operator:
    """Return the operator to run for one partition; only a `GivenStream` depends on it."""
    return _changed(operator, "partition", partition)


def of_first(operator: Operator, limit: int) -> Operator:
    """Return the operator of a preview; a `GivenStream` ends after ``limit`` items."""
    return _changed(operator, "limit", limit)


def _changed(operator: Operator, name: str, value: object) -> Operator:
    if not isinstance(operator, GivenStream):
        return operator
    copied = copy.copy(operator)
    setattr(copied, name, value)
    return copied


def is_stream(value: object) -> bool:
    """Return whether ``value`` is a stream, a builder of one, or an object that makes one."""
    if isinstance(value, Readable):
        return True
    if isinstance(value, (str, os.PathLike, type, JsonlDataset, Operator)):
        return False
    from dagster_dataops.streams.operations import Operations

    if isinstance(value, Operations):
        return True
    return callable(getattr(value, "stream", None)) and isinstance(value, Streamed)


def as_reading(value: object, name: str) -> "PositionedStream":
    """Return the stream of a value for which `is_stream` is true, at its start.

    Raises:
        StreamArgumentError: The value is not a stream.
        StreamDefinitionError: The stream never ends.
    """
    stream = opened(value, name)
    check_ends(stream)
    return stream


def opened(value: object, name: str) -> "PositionedStream":
    """Return the stream that `as_reading` returns, even if it never ends.

    Raises:
        StreamArgumentError: The value is not a stream.
    """
    from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
    from dagster_dataops.streams.operations import Operations
    from dagster_dataops.streams.positioned_stream import PositionedStream

    if isinstance(value, Operations):
        value = value.as_written()
    if isinstance(value, PositionedStream):
        return value.fresh_copy()
    if isinstance(value, DataPipelineBuilder):
        return value.and_return()
    if isinstance(value, Readable) or (is_stream(value) and isinstance(value, Streamed)):
        return opened(value.stream(), name)
    reason = f"it must be a stream, not a {type(value).__name__}"
    raise StreamArgumentError(name, reason)


def check_ends(stream: "Operations") -> None:
    """Check that a stream ends.

    Raises:
        StreamDefinitionError: The stream never ends; the error names the stage that causes this.
    """
    from dagster_dataops.streams.core.finitude import Finitude

    if stream.finitude is not Finitude.FINITE:
        reason = (
            "never ends, and a stream that is written must end; add `.take(n)` after it, or use "
            "`.repeat(n)` instead of `.repeat()`"
        )
        raise StreamDefinitionError(stream.endless_stage or "stream", reason)


def name_of_stream(stream: object) -> str:
    """Return the name of a stream: its own, that of its first file, or that of its last stage."""
    name = getattr(stream, "name", None)
    if isinstance(name, str):
        return _plain(name)
    from dagster_dataops.streams.files.file_stages import FileStage
    from dagster_dataops.streams.operations import Operations

    stage = stream.stage if isinstance(stream, Operations) else None
    if stage is None:
        return "stream"
    files = (inner.files.paths[0] for inner in stage.ordered() if isinstance(inner, FileStage))
    first = next(files, None)
    if first:
        return _plain(stem_of(first))
    return [inner.name for inner in stage.ordered() if not inner.transparent][-1]


def stem_of(path: str) -> str:
    """Return the name of a file without suffixes, such as ``docs`` for ``docs.jsonl.gz``."""
    name = file_name(path)
    return name.partition(".")[0] if not name.startswith(".") else name


def file_name(path: str) -> str:
    """Return the last part of a path; Windows paths are understood on every system."""
    windows = PureWindowsPath(path)
    return windows.name if windows.is_absolute() else Path(path).name


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text) or "stream"
