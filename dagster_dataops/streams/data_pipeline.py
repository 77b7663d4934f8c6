"""`DataPipeline` and `DataPipelineBuilder`: build, combine and read streams."""

import math
import os
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.arguments import check_seed, texts
from dagster_dataops.streams.core.item_failures import FAILURE_TOLERANCE, OnError, OnFailure
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

_DEFAULTS: Final = {  # of the options of combinations
    "stop_at_shortest": False,
    "allow_repeats": True,
    "weights": None,
    "seed": None,
    "names": None,
    "zip_to_shortest": False,
    "flatten": False,
    "disable_parallelism": False,
}


class DataPipelineBuilder(Operations):
    """A stream under construction. It is immutable: every operation returns a new builder."""

    def and_return(
        self,
        max_num_warnings: int = 0,
        *,
        on_error: OnError | OnFailure | None = None,
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

        Example:
            >>> stream = read_sequence([1, 2]).map(lambda n: n + 1).and_return()
            >>> first, state = next(iter(stream)), stream.state_dict()
            >>> again = read_sequence([1, 2]).map(lambda n: n + 1).and_return()
            >>> again.load_state_dict(state)
            >>> first, list(again)
            (2, [3])
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
        """Yield ``start``, ``start + step`` and so on; with ``key``, as ``{key: number}``.

        Example:
            >>> list(DataPipeline.count(5, key="id").take(2))
            [{'id': 5}, {'id': 6}]
        """
        return DataPipelineBuilder(CountSource(start, step, key))

    @staticmethod
    def constant(example: Any, key: str | None = None) -> DataPipelineBuilder:
        """Yield ``example`` without end; with ``key``, as ``{key: example}``.

        Example:
            >>> list(DataPipeline.constant("a").take(2))
            ['a', 'a']
        """
        return DataPipelineBuilder(ConstantSource(fresh(example), key))

    @staticmethod
    def concat(*streams: Streams, pipelines: "Streams | None" = None) -> DataPipelineBuilder:
        """Yield the items of one stream after another.

        Args:
            streams: The streams, one by one or as a list.
            pipelines: The streams as a list, in place of ``streams``.

        Example:
            >>> first, second = read_sequence([1]), read_sequence([2])
            >>> list(DataPipeline.concat([first, second]))
            [1, 2]
        """
        stages, _ = _combined("concat", streams, pipelines, {})
        return DataPipelineBuilder(ConcatStage(stages))

    @staticmethod
    def round_robin(
        *streams: Any,
        pipelines: "Streams | None" = None,
        stop_at_shortest: bool = False,
        allow_repeats: bool = True,
    ) -> DataPipelineBuilder:
        """Yield one item of each stream in turn, until every stream has ended once.

        Args:
            streams: The streams, one by one; or as a list, which the further arguments may follow
                by position: ``round_robin(pipelines, stop_at_shortest, allow_repeats)``.
            pipelines: The streams as a list, in place of ``streams``.
            stop_at_shortest: Whether to stop after the round in which the first stream ends.
            allow_repeats: Whether a stream that has ended starts again while others continue.

        Example:
            >>> first, second = read_sequence([1, 2, 3]), read_sequence([8, 9])
            >>> list(DataPipeline.round_robin([first, second], True))
            [1, 8, 2, 9]
        """
        named = {"stop_at_shortest": stop_at_shortest, "allow_repeats": allow_repeats}
        stages, options = _combined("round_robin", streams, pipelines, named)
        return DataPipelineBuilder(RoundRobinStage(stages, *options))

    @staticmethod
    def sample(
        *streams: Any,
        pipelines: "Streams | None" = None,
        weights: SequenceOf[float] | None = None,
        seed: int | None = None,
        allow_repeats: bool = True,
    ) -> DataPipelineBuilder:
        """Yield items of streams chosen at random by weight, until every stream has ended once.

        Args:
            streams: The streams, one by one; or as a list, which the further arguments may follow
                by position: ``sample(pipelines, weights, seed, allow_repeats)``.
            pipelines: The streams as a list, in place of ``streams``.
            weights: The relative frequency of each stream; equal if ``None``.
            seed: The seed of the draws. If ``None``, it is derived from the stream's seed and
                recorded in the state.
            allow_repeats: Whether a stream that has ended starts again while others continue.

        Example:
            >>> first, second = read_sequence([1, 2, 3]), read_sequence([8, 9])
            >>> mixed = DataPipeline.sample([first, second], [0.7, 0.3], 5)
            >>> sorted(set(mixed))
            [1, 2, 3, 8, 9]
        """
        named = {"weights": weights, "seed": seed, "allow_repeats": allow_repeats}
        stages, (chosen, seed_given, repeats) = _combined("sample", streams, pipelines, named)
        check_seed("sample", seed_given)
        shares = _weights(chosen, len(stages))
        return DataPipelineBuilder(SampleStage(stages, shares, seed_given, repeats))

    @staticmethod
    def zip(
        *streams: Any,
        pipelines: "Streams | None" = None,
        names: SequenceOf[str] | None = None,
        zip_to_shortest: bool = False,
        flatten: bool = False,
        disable_parallelism: bool = False,
    ) -> DataPipelineBuilder:
        """Yield lists with one item of each stream.

        Args:
            streams: The streams, one by one; or as a list, which the further arguments may follow
                by position: ``zip(pipelines, names, zip_to_shortest, flatten)``.
            pipelines: The streams as a list, in place of ``streams``.
            names: Keys for the items; each row becomes a dict.
            zip_to_shortest: Whether to drop the rest of longer streams. Otherwise different
                lengths are an error.
            flatten: Whether to merge dicts into one dict, and lists into one list.
            disable_parallelism: No effect: streams are always read one after another.

        Example:
            >>> texts, numbers = read_sequence(["a", "b"]), DataPipeline.count()
            >>> list(DataPipeline.zip([texts, numbers], ["text", "id"]))
            [{'text': 'a', 'id': 0}, {'text': 'b', 'id': 1}]
        """
        named = {
            "names": names,
            "zip_to_shortest": zip_to_shortest,
            "flatten": flatten,
            "disable_parallelism": disable_parallelism,
        }
        stages, (chosen, shortest, merges, _) = _combined("zip", streams, pipelines, named)
        keys = texts("zip", "names", chosen) or ()
        if keys and merges:
            raise StreamDefinitionError("zip", "names and flatten cannot be used together")
        if keys and len(keys) != len(stages):
            raise StreamDefinitionError(
                "zip", f"got {counted(len(stages), 'streams')} and {counted(len(keys), 'names')}"
            )
        return DataPipelineBuilder(ZipStage(stages, keys, shortest, merges))


def _weights(numbers: SequenceOf[float] | None, count: int) -> tuple[float, ...]:
    weights = [1.0] * count if numbers is None else list(numbers)
    if len(weights) != count:
        reason = f"got {counted(count, 'streams')} and {counted(len(weights), 'weights')}"
        raise StreamDefinitionError("sample", reason)
    for weight in weights:
        if not (weight > 0 and math.isfinite(weight)):
            raise StreamDefinitionError("sample", f"the weight {weight} must be a number above 0")
    return tuple(map(float, weights))


def _combined(
    name: str, streams: tuple[Any, ...], pipelines: "Streams | None", named: dict[str, Any]
) -> tuple[tuple[Stage, ...], list[Any]]:
    """Return the stages of streams, and the options in order.

    Args:
        name: The combination.
        streams: The arguments by position: streams, or a list of streams and then options.
        pipelines: The argument ``pipelines``; ``None`` if it is not given.
        named: The options by name.
    """
    options = dict(named)
    if pipelines is not None:
        if streams:
            raise StreamArgumentError(name, "streams are given by position and as pipelines")
        streams = (pipelines,)
    elif streams and not isinstance(streams[0], Operations) and isinstance(streams[0], Iterable):
        streams, further = streams[:1], streams[1:]
        if len(further) > len(options):
            signature = ", ".join(["pipelines", *options])
            reason = f"got {counted(1 + len(further), 'arguments')}; it takes ({signature})"
            raise StreamArgumentError(name, reason)
        placed = dict(zip(options, further, strict=False))
        twice = next(
            (option for option in placed if options[option] is not _DEFAULTS[option]), None
        )
        if twice is not None:
            raise StreamArgumentError(name, f"{twice} is given by position and by name")
        options |= placed
    return _stages(name, streams), list(options.values())


def _stages(name: str, arguments: tuple[Streams, ...]) -> tuple[Stage, ...]:
    """Return the stages of streams that are given one by one or as one list."""
    streams: Iterable[Any] = arguments
    if len(arguments) == 1 and not isinstance(arguments[0], Operations):
        streams = arguments[0]
    stages = []
    for stream in streams:
        if not isinstance(stream, Operations):
            reason = f"expected streams, but got a {type(stream).__name__}"
            raise StreamArgumentError(name, reason)
        stages.append(stream.part())
    check_inputs(name, stages)
    return tuple(stages)
