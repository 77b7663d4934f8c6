"""DataPipeline and DataPipelineBuilder: streams as they are built, combined and read."""

import math
import os
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from typing import Any, TypeAlias

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.streams.core.arguments import check_seed
from dagster_dataops.streams.core.item_failures import OnError
from dagster_dataops.streams.core.sequences import Constant, Count, fresh
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import Reading
from dagster_dataops.streams.stages.concatenating import Concat
from dagster_dataops.streams.stages.round_robin import RoundRobin
from dagster_dataops.streams.stages.sampling import Sample
from dagster_dataops.streams.stages.zipping import Zip

Streams: TypeAlias = "Operations | Iterable[Operations]"


class DataPipelineBuilder(Operations):
    """A stream that is being built. It never changes: every operation returns another."""

    def and_return(
        self,
        max_num_warnings: int = 0,
        *,
        on_error: OnError | None = None,
        max_errors: int | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> "DataPipeline":
        """Return the stream, to be read or combined with others.

        Args:
            max_num_warnings: Short for ``on_error="skip", max_errors=max_num_warnings``.
            on_error: See `DataPipeline`.
            max_errors: See `DataPipeline`.
            quarantine: See `DataPipeline`.
            seed: See `DataPipeline`.
        """
        if max_num_warnings and on_error is None:
            on_error, max_errors = "skip", max_num_warnings
        return DataPipeline(
            self.stage,
            on_error=on_error or "raise",
            max_errors=max_errors,
            quarantine=quarantine,
            seed=seed,
        )

    def __iter__(self) -> Iterator[Any]:
        """Yield the items of a stream of its own, from the start."""
        return iter(self.and_return())


class DataPipeline(Reading):
    """A stream: items pulled through its stages one by one, with a position that is JSON.

    All iterators share its position. Combined with others, it is what it consists of that counts,
    not where it stands: a stream used twice is two streams.
    """

    @staticmethod
    def count(start: int = 0, step: int = 1, key: str | None = None) -> DataPipelineBuilder:
        """Count from ``start`` by ``step``, for ever; with ``key``, as ``{key: number}``."""
        return DataPipelineBuilder(Count(start, step, key))

    @staticmethod
    def constant(example: Any, key: str | None = None) -> DataPipelineBuilder:
        """Yield ``example`` for ever; with ``key``, as ``{key: example}``."""
        return DataPipelineBuilder(Constant(fresh(example), key))

    @staticmethod
    def concat(*pipelines: Streams) -> DataPipelineBuilder:
        """Yield the items of one stream after another. Streams are given one by one or as a list.

        Args:
            pipelines: The streams.
        """
        return DataPipelineBuilder(Concat(_stages("concat", pipelines)))

    @staticmethod
    def round_robin(
        *pipelines: Streams, stop_at_shortest: bool = False, allow_repeats: bool = True
    ) -> DataPipelineBuilder:
        """Yield one item of each stream in turn, until all have ended once.

        Args:
            pipelines: The streams, one by one or as a list.
            stop_at_shortest: Whether the first that ends ends it, after its round.
            allow_repeats: Whether streams that have ended begin again while others go on.
        """
        stages = _stages("round_robin", pipelines)
        return DataPipelineBuilder(RoundRobin(stages, stop_at_shortest, allow_repeats))

    @staticmethod
    def sample(
        *pipelines: Streams,
        weights: SequenceOf[float] | None = None,
        seed: int | None = None,
        allow_repeats: bool = True,
    ) -> DataPipelineBuilder:
        """Yield items of streams drawn by weight, until all have ended once.

        Args:
            pipelines: The streams, one by one or as a list.
            weights: How often each is drawn, relative to the others; all alike if ``None``.
            seed: Of the draws; derived from the stream's, and recorded in its state, if ``None``.
            allow_repeats: Whether streams that have ended begin again while others go on.
        """
        stages = _stages("sample", pipelines)
        given = [1.0] * len(stages) if weights is None else list(weights)
        if len(given) != len(stages):
            reason = f"there are {len(stages)} streams and {len(given)} weights"
            raise StreamDefinitionError("sample", reason)
        for weight in given:
            if not (weight > 0 and math.isfinite(weight)):
                raise StreamDefinitionError("sample", f"the weight {weight} is no number above 0")
        check_seed("sample", seed)
        return DataPipelineBuilder(Sample(stages, tuple(map(float, given)), seed, allow_repeats))

    @staticmethod
    def zip(
        *pipelines: Streams,
        names: SequenceOf[str] | None = None,
        zip_to_shortest: bool = False,
        flatten: bool = False,
        disable_parallelism: bool = False,
    ) -> DataPipelineBuilder:
        """Yield lists of one item of each stream.

        Args:
            pipelines: The streams, one by one or as a list.
            names: Keys; rows become dicts.
            zip_to_shortest: Whether the rest of longer streams is dropped; else it is an error.
            flatten: Whether dicts become one dict, and lists one list.
            disable_parallelism: Without effect: streams are read one after another.
        """
        del disable_parallelism
        stages = _stages("zip", pipelines)
        keys = tuple(names or ())
        if keys and flatten:
            raise StreamDefinitionError("zip", "names and flatten exclude one another")
        if keys and len(keys) != len(stages):
            raise StreamDefinitionError(
                "zip", f"there are {len(stages)} streams, {len(keys)} names"
            )
        return DataPipelineBuilder(Zip(stages, keys, zip_to_shortest, flatten))


def _stages(name: str, given: tuple[Streams, ...]) -> tuple[Stage, ...]:
    """Return the stages of streams that were given one by one or as one list."""
    streams: Iterable[Any] = given
    if len(given) == 1 and not isinstance(given[0], Operations):
        streams = given[0]
    found = []
    for stream in streams:
        if not isinstance(stream, Operations):
            reason = f"takes streams, and was given a {type(stream).__name__}"
            raise StreamArgumentError(name, reason)
        found.append(stream.part())
    return tuple(found)
