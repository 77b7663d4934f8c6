"""Rebuild the tree of a stream's stages around a stage that is exchanged."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from dagster_dataops.streams.core.stage import CombinedStage, Stage, UnaryStage


def distinct_stages(last: Stage) -> list[Stage]:
    """Return a stage and all its inputs, each once, sources first."""
    return list(dict.fromkeys(last.ordered()))


def datasets_of(last: Stage) -> list[Any]:
    """Return the descriptions of the datasets that files name for the stages of a stream."""
    return [dataset for stage in last.ordered() for dataset in stage.datasets()]


def share_of(last: Stage) -> tuple[int, int]:
    """Return the number of the share of all items that a stream yields, and how many there are.

    Streams that differ only in their rank or shard have different numbers.
    """
    part_number, number = 0, 1
    for stage in distinct_stages(last):
        part, parts = stage.share
        part_number, number = part_number * parts + part, number * parts
    return part_number, number


def exchanged(last: Stage, old: Stage, make: Callable[[Stage], Stage]) -> Stage:
    """Return ``last`` with ``make(old)`` in the place of ``old``, wherever it is an input.

    Stages that do not depend on ``old`` stay the same objects; ``last`` is not changed.

    Args:
        last: The last stage of a stream.
        old: The stage to exchange; a stage of the stream, or ``last`` itself.
        make: Returns the stage that takes its place. It is called once.
    """
    exchanged_stages: dict[Stage, Stage] = {}
    for stage in distinct_stages(last):
        exchanged_stages[stage] = (
            make(stage) if stage is old else with_inputs(stage, exchanged_stages)
        )
    return exchanged_stages[last]


def with_inputs(stage: Stage, exchanged_stages: Mapping[Stage, Stage]) -> Stage:
    """Return ``stage`` with new inputs; itself if none of them is new."""
    inputs = tuple(exchanged_stages[source] for source in stage.inputs)
    if inputs == stage.inputs:
        return stage
    other: Stage
    if isinstance(stage, UnaryStage):
        other = replace(stage, upstream=inputs[0])
    else:
        other = replace(cast("CombinedStage", stage), sources=inputs)
    other.code_seen = stage.code_seen  # the functions are the same
    return other
