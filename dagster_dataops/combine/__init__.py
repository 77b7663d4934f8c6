"""Results combined: as a node of a pipeline, or as the source of one.

    with pipeline("docs") as ppl:
        ppl.add("good", data.demo.grade(), inputs=[ppl.source])
        ppl.add("more", data.demo.gather(), inputs=[ppl.source])
        ppl.mix = combine.sample([ppl.good, ppl.more], weights=[0.7, 0.3], seed=1)

    build_definitions(training, source=combine.sample([good, "extra.jsonl"], weights=[0.7, 0.3]))

Each function takes a list: nodes of the pipeline, or, for a source, assets, keys of assets and
paths of jsonl files. Given streams it returns a stream, as `DataPipeline` has it.
"""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.combine.stream_operators import Concat, RoundRobin, Sample, Zip
from dagster_dataops.pipelines.combined_inputs import Combined, check_stream, listed
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.operations import Operations


def sample(
    inputs: Sequence[object],
    *,
    weights: Sequence[float] | None = None,
    seed: int | None = None,
    allow_repeats: bool = True,
) -> Any:
    """Combine results by drawing from them by weight.

    Args:
        inputs: What to combine.
        weights: How often each is drawn, relative to the others; all alike if ``None``.
        seed: Of the draws.
        allow_repeats: Whether results that have ended begin again until all have; else every
            record comes once.

    Raises:
        PipelineDefinitionError: These cannot be combined so.
    """
    given = None if weights is None else list(weights)
    return _combined(Sample(weights=given, seed=seed, allow_repeats=allow_repeats), inputs)


def round_robin(
    inputs: Sequence[object], *, stop_at_shortest: bool = False, allow_repeats: bool = True
) -> Any:
    """Combine results by taking one record of each in turn.

    Args:
        inputs: What to combine.
        stop_at_shortest: Whether the first that ends ends it.
        allow_repeats: As for `sample`.

    Raises:
        PipelineDefinitionError: These cannot be combined so.
    """
    operator = RoundRobin(stop_at_shortest=stop_at_shortest, allow_repeats=allow_repeats)
    return _combined(operator, inputs)


def zip(  # noqa: A001 - reached as combine.zip
    inputs: Sequence[object],
    *,
    names: Sequence[str] | None = None,
    zip_to_shortest: bool = False,
    flatten: bool = False,
) -> Any:
    """Combine results side by side: a record of one record of each.

    Args:
        inputs: What to combine.
        names: A key for each.
        zip_to_shortest: Whether the rest of longer ones is dropped; else it is an error.
        flatten: Whether the keys of the records become those of one, in place of ``names``.

    Raises:
        StreamDefinitionError: There are neither names nor ``flatten``.
        PipelineDefinitionError: These cannot be combined so.
    """
    given = None if names is None else list(names)
    operator = Zip(names=given, zip_to_shortest=zip_to_shortest, flatten=flatten)
    return _combined(operator, inputs)


def concat(inputs: Sequence[object]) -> Any:
    """Combine results one after another.

    Args:
        inputs: What to combine.

    Raises:
        PipelineDefinitionError: These cannot be combined so.
    """
    return _combined(Concat(), inputs)


def _combined(operator: Any, inputs: Sequence[object]) -> Combined | DataPipelineBuilder:
    found = listed(inputs)
    if all(isinstance(one, Operations) for one in found):
        made: DataPipelineBuilder = operator.stream(*found)
        return made
    check_stream("combine", operator.__dataops__.spec.name, operator, len(found))
    return Combined(operator, found)
