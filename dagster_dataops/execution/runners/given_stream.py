"""GivenStream: a stream as an operator without inputs, so that it is run and written as one.

So is the source of a pipeline: a stream, a function that returns one, or an object that makes one.
"""

import copy
import re
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import Final, Protocol, runtime_checkable

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.reader_base import Readable
from dagster_dataops.operators.settings import ExecutionSettings
from dagster_dataops.operators.spec import Invocation, OperatorSpec
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.file_stages import FileStage
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import PositionedStream

_SINGLE: Final = ExecutionSettings(concurrency_mode="single")


@runtime_checkable
class Streamed(Protocol):
    """What makes a stream, such as a reader.

    Attributes:
        name: Names its asset.
    """

    name: str

    def stream(self) -> Operations:
        """Return the stream, at its start."""
        ...


class GivenStream(Operator):
    """A stream as an operator without inputs; made by `given_stream`.

    Attributes:
        partition: Which one its function is asked for; ``None`` where there are none.
        limit: After how many items it ends; ``None`` where it ends by itself.
    """

    make: Callable[..., object]
    partition: str | None = None
    limit: int | None = None

    def stream(self) -> PositionedStream:
        """Return the stream, at its start."""
        arguments = () if self.partition is None else (self.partition,)
        made = self.make(*arguments)
        name = self.__dataops__.spec.name
        if self.limit is None:
            return as_reading(made, name)
        return opened(made, name).fresh_copy(limit=self.limit)

    def of_partition(self, partition: str | None) -> "GivenStream":
        """Return the operator of one partition."""
        made = copy.copy(self)
        made.partition = partition
        return made

    def first(self, limit: int) -> "GivenStream":
        """Return the operator of the first ``limit`` items."""
        made = copy.copy(self)
        made.limit = limit
        return made


def given_stream(name: str, make: Callable[..., object], target: object = None) -> GivenStream:
    """Return an operator without inputs of what ``make`` returns.

    Args:
        name: Of the stream.
        make: Returns a stream, a builder of one or what has one; given a partition's key if there
            are partitions.
        target: The function whose code counts as the stream's; ``None`` for its stages alone.
    """
    operator: GivenStream = object.__new__(GivenStream)
    spec = OperatorSpec(
        group="stream",
        name=name,
        kind="stream",
        target=target or _given,
        options=(),
        any_option=False,
        settings=_SINGLE,
        inputs=0,
        streamed=(),
        asynchronous=False,
    )
    operator.__dataops__ = Invocation(spec=spec, options={}, settings=_SINGLE)
    operator.make = make
    return operator


def _given() -> None: ...


def of_partition(operator: Operator, partition: str | None) -> Operator:
    """Return an operator as it is run for one partition; most are the same for all."""
    return operator.of_partition(partition) if isinstance(operator, GivenStream) else operator


def of_first(operator: Operator, limit: int) -> Operator:
    """Return an operator as it previews: one without inputs ends after so many items."""
    return operator.first(limit) if isinstance(operator, GivenStream) else operator


def is_stream(value: object) -> bool:
    """Whether ``value`` is a stream, or a builder of one, or makes one."""
    if isinstance(value, (Operations, Readable)):
        return True
    if isinstance(value, (type, JsonlDataset, Operator)):
        return False
    return callable(getattr(value, "stream", None)) and isinstance(value, Streamed)


def as_reading(value: object, name: str) -> PositionedStream:
    """Return a stream at its start of what `is_stream`.

    Raises:
        StreamArgumentError: It is no stream.
        StreamDefinitionError: It never ends.
    """
    found = opened(value, name)
    check_ends(found)
    return found


def opened(value: object, name: str) -> PositionedStream:
    """Return a stream at its start of what `is_stream`, even if it never ends.

    Raises:
        StreamArgumentError: It is no stream.
    """
    if isinstance(value, PositionedStream):
        return value.fresh_copy()
    if isinstance(value, DataPipelineBuilder):
        return value.and_return()
    if isinstance(value, Readable) or (is_stream(value) and isinstance(value, Streamed)):
        return opened(value.stream(), name)
    reason = f"a stream is wanted, and it is a {type(value).__name__}"
    raise StreamArgumentError(name, reason)


def check_ends(stream: Operations) -> None:
    """Refuse a stream that never ends.

    Raises:
        StreamDefinitionError: It does not; the stage that makes it so is named.
    """
    if stream.finitude is not Finitude.FINITE:
        reason = (
            "never ends by itself, and what is written down must; give it an end, such as "
            "`.take(n)` behind it or `.repeat(n)` in place of `.repeat()`"
        )
        raise StreamDefinitionError(stream.endless_stage or "stream", reason)


def name_of_stream(stream: object) -> str:
    """Return what to call a stream: its own name, the first of its files, or its last stage."""
    own = getattr(stream, "name", None)
    if isinstance(own, str):
        return _plain(own)
    stage = stream.stage if isinstance(stream, Operations) else None
    if stage is None:
        return "stream"
    files = (one.files.given[0] for one in stage.ordered() if isinstance(one, FileStage))
    first = next(files, None)
    return _plain(stem_of(first)) if first else stage.name


def stem_of(path: str) -> str:
    """Return the name of a file without what its kind adds, as of ``docs.jsonl.gz``."""
    name = file_name(path)
    return name.partition(".")[0] if not name.startswith(".") else name


def file_name(path: str) -> str:
    """Return the last part of a path; of one of Windows too, on whatever system this is."""
    windows = PureWindowsPath(path)
    return windows.name if windows.is_absolute() else Path(path).name


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text) or "stream"
