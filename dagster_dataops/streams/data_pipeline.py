"""`DataPipeline` and `DataPipelineBuilder`: build, combine and read streams."""

import math
import os
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from typing import Any, TypeAlias

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.quantities import counted
from dagster_dataops.streams.core.arguments import check_seed
from dagster_dataops.streams.core.item_failures import FAILURE_TOLERANCE, OnError
from dagster_dataops.streams.core.sequences import ConstantSource, CountSource, fresh
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import PositionedStream
from dagster_dataops.streams.sharding.marks import check_inputs
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.round_robin import RoundRobinStage
from dagster_dataops.streams.stages.sampling import SampleStage
from dagster_dataops.streams.stages.zipping import ZipStage

Streams: TypeAlias = "Operations | Iterable[Operations]"


class DataPipelineBuilder(Operations):
    """A stream under construction. It is immutable: every operation returns a new builder."""

    def and_return(
        self,
        max_num_warnings: int = 0,
        *,
        on_error: OnError | None = None,
        max_errors: int | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        seed: int = 0,
        failure_tolerance: int | None = FAILURE_TOLERANCE,
    ) -> "DataPipeline":
        """Return the finished stream, to be read or combined with others.

        Args:
            max_num_warnings: Short for ``on_error="skip", max_errors=max_num_warnings``, however
                many are in a row.
            on_error: See `DataPipeline`.
            max_errors: See `DataPipeline`.
            quarantine: See `DataPipeline`.
            seed: See `DataPipeline`.
            failure_tolerance: See `DataPipeline`.
        """
        if max_num_warnings and on_error is None:
            on_error, max_errors, failure_tolerance = "skip", max_num_warnings, None
        return self._finished()(
            self.stage,
            on_error=on_error or "raise",
            max_errors=max_errors,
            quarantine=quarantine,
            seed=seed,
            failure_tolerance=failure_tolerance,
        )

    def _finished(self) -> "type[DataPipeline]":
        """Return the class of the finished stream."""
        return DataPipeline

    def __iter__(self) -> Iterator[Any]:
        """Yield the items of a new stream, from its start."""
        return iter(self.and_return())


class DataPipeline(PositionedStream):
    """A stream: items are pulled one by one through its stages; its position is JSON.

    All iterators over a stream share its position. A combination uses only the definition of the
    stream, not its position, so one stream can be part of several combinations.
    """

    @staticmethod
    def count(start: int = 0, step: int = 1, key: str | None = None) -> DataPipelineBuilder:
        """Yield ``start``, ``start + step`` and so on; with ``key``, as ``{key: number}``."""
        return DataPipelineBuilder(CountSource(start, step, key))

    @staticmethod
    def constant(example: Any, key: str | None = None) -> DataPipelineBuilder:
        """Yield ``example`` without end; with ``key``, as ``{key: example}``."""
        return DataPipelineBuilder(ConstantSource(fresh(example), key))

    @staticmethod
    def concat(*pipelines: Streams) -> DataPipelineBuilder:
        """Yield the items of one stream after another.

        Args:
            pipelines: The streams, one by one or as a list.
        """
        return DataPipelineBuilder(ConcatStage(_stages("concat", pipelines)))

    @staticmethod
    def round_robin(
        *pipelines: Streams, stop_at_shortest: bool = False, allow_repeats: bool = True
    ) -> DataPipelineBuilder:
        """Yield one item of each stream in turn, until every stream has ended once.

        Args:
            pipelines: The streams, one by one or as a list.
            stop_at_shortest: Whether to stop after the round in which the first stream ends.
            allow_repeats: Whether a stream that has ended starts again while others continue.
        """
        stages = _stages("round_robin", pipelines)
        return DataPipelineBuilder(RoundRobinStage(stages, stop_at_shortest, allow_repeats))

    @staticmethod
    def sample(
        *pipelines: Streams,
        weights: SequenceOf[float] | None = None,
        seed: int | None = None,
        allow_repeats: bool = True,
    ) -> DataPipelineBuilder:
        """Yield items of streams chosen at random by weight, until every stream has ended once.

        Args:
            pipelines: The streams, one by one or as a list.
            weights: The relative frequency of each stream; equal if ``None``.
            seed: The seed of the draws. If ``None``, it is derived from the stream's seed and
                recorded in the state.
            allow_repeats: Whether a stream that has ended starts again while others continue.
        """
        stages = _stages("sample", pipelines)
        given = [1.0] * len(stages) if weights is None else list(weights)
        if len(given) != len(stages):
            reason = f"got {counted(len(stages), 'streams')} and {counted(len(given), 'weights')}"
            raise StreamDefinitionError("sample", reason)
        for weight in given:
            if not (weight > 0 and math.isfinite(weight)):
                raise StreamDefinitionError(
                    "sample", f"the weight {weight} must be a number above 0"
                )
        check_seed("sample", seed)
        return DataPipelineBuilder(
            SampleStage(stages, tuple(map(float, given)), seed, allow_repeats)
        )

    @staticmethod
    def zip(
        *pipelines: Streams,
        names: SequenceOf[str] | None = None,
        zip_to_shortest: bool = False,
        flatten: bool = False,
        disable_parallelism: bool = False,
    ) -> DataPipelineBuilder:
        """Yield lists with one item of each stream.

        Args:
            pipelines: The streams, one by one or as a list.
            names: Keys for the items; each row becomes a dict.
            zip_to_shortest: Whether to drop the rest of longer streams. Otherwise different
                lengths are an error.
            flatten: Whether to merge dicts into one dict, and lists into one list.
            disable_parallelism: No effect: streams are always read one after another.
        """
        del disable_parallelism
        stages = _stages("zip", pipelines)
        keys = tuple(names or ())
        if keys and flatten:
            raise StreamDefinitionError("zip", "names and flatten cannot be used together")
        if keys and len(keys) != len(stages):
            raise StreamDefinitionError(
                "zip", f"got {counted(len(stages), 'streams')} and {counted(len(keys), 'names')}"
            )
        return DataPipelineBuilder(ZipStage(stages, keys, zip_to_shortest, flatten))


def _stages(name: str, given: tuple[Streams, ...]) -> tuple[Stage, ...]:
    """Return the stages of streams that are given one by one or as one list."""
    streams: Iterable[Any] = given
    if len(given) == 1 and not isinstance(given[0], Operations):
        streams = given[0]
    found = []
    for stream in streams:
        if not isinstance(stream, Operations):
            reason = f"expected streams, but got a {type(stream).__name__}"
            raise StreamArgumentError(name, reason)
        found.append(stream.part())
    check_inputs(name, found)
    return tuple(found)
