"""Combine results: as a node of a pipeline, or as the source of one.

 with pipeline("docs") as ppl:
     ppl.add("good", data.demo.grade(), inputs=[ppl.source])
     ppl.add("more", data.demo.gather(), inputs=[ppl.source])
     ppl.mix = combine.sample([ppl.good, ppl.more], weights=[0.7, 0.3], seed=1)

 build_definitions(training, source=combine.sample([good, "extra.jsonl"], weights=[0.7, 0.3]))

Each function takes a list: nodes of the pipeline; or, for a source, assets, asset keys and paths of
jsonl files. Given streams, it returns a stream, as `DataPipeline` does.
"""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.library.combine.stream_operators import Concat, RoundRobin, Sample, Zip
from dagster_dataops.pipelines.combined_inputs import Combined, check_stream, listed
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.operations import Operations

__all__ = ["concat", "round_robin", "sample", "zip"]


def __dir__() -> list[str]:
    return __all__


def sample(
    inputs: Sequence[object],
    *,
    weights: Sequence[float] | None = None,
    seed: int | None = None,
    allow_repeats: bool = True,
) -> Any:
    """Combine results by weighted random choice.

    Args:
        inputs: The inputs.
        weights: The relative frequency of each input; equal if ``None``.
        seed: The seed of the choices.
        allow_repeats: Whether an input that has ended starts again until all have ended. If false,
            every record is taken once.

    Raises:
        PipelineDefinitionError: The inputs cannot be combined.
    """
    values = None if weights is None else list(weights)
    return _combined(Sample(weights=values, seed=seed, allow_repeats=allow_repeats), inputs)


def round_robin(
    inputs: Sequence[object], *, stop_at_shortest: bool = False, allow_repeats: bool = True
) -> Any:
    """Combine results by taking one record of each in turn.

    Args:
        inputs: The inputs.
        stop_at_shortest: Whether to stop when the first input ends.
        allow_repeats: As for `sample`.

    Raises:
        PipelineDefinitionError: The inputs cannot be combined.
    """
    operator = RoundRobin(stop_at_shortest=stop_at_shortest, allow_repeats=allow_repeats)
    return _combined(operator, inputs)


def zip(  # noqa: A001 - used as combine.zip
    inputs: Sequence[object],
    *,
    names: Sequence[str] | None = None,
    zip_to_shortest: bool = False,
    flatten: bool = False,
) -> Any:
    """Combine results side by side: each record contains one record of each input.

    Args:
        inputs: The inputs.
        names: A key for each input.
        zip_to_shortest: Whether to drop the rest of longer inputs. Otherwise different lengths
            are an error.
        flatten: Whether to merge the keys of the records instead of using ``names``.

    Raises:
        StreamDefinitionError: Neither ``names`` nor ``flatten`` is given.
        PipelineDefinitionError: The inputs cannot be combined.
    """
    columns = None if names is None else list(names)
    operator = Zip(names=columns, zip_to_shortest=zip_to_shortest, flatten=flatten)
    return _combined(operator, inputs)


def concat(inputs: Sequence[object]) -> Any:
    """Combine results one after another.

    Args:
        inputs: The inputs.

    Raises:
        PipelineDefinitionError: The inputs cannot be combined.
    """
    return _combined(Concat(), inputs)


def _combined(operator: Any, inputs: Sequence[object]) -> Combined | DataPipelineBuilder:
    streams = listed(inputs)
    if all(isinstance(stream, Operations) for stream in streams):
        stream: DataPipelineBuilder = operator.stream(*streams)
        return stream
    check_stream("combine", operator.__dataops__.spec.name, operator, len(streams))
    return Combined(operator, streams)
