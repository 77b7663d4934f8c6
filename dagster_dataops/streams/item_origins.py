"""Item origins: which records of its inputs each item of a stream came from.

They are known if every stage chooses items by position alone: then the stages are read again, over
numbers instead of records. `describe` returns such a stream as JSON, for the manifest of its
result; `ItemOrigins` reads it.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast

from dagster_dataops.streams.core.sequences import SequenceSource
from dagster_dataops.streams.core.stage import Stage, UnaryStage
from dagster_dataops.streams.positioned_stream import PositionedStream
from dagster_dataops.streams.result_stream import ResultRecords
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.mapping import Map, RandomMap
from dagster_dataops.streams.stages.prefetching import Prefetch
from dagster_dataops.streams.stages.round_robin import RoundRobinStage
from dagster_dataops.streams.stages.sampling import SampleStage
from dagster_dataops.streams.stages.taking import ContiguousShard, Shard, Skip, Take
from dagster_dataops.streams.stages.zipping import ZipStage

Description: TypeAlias = dict[str, Any]
Origins: TypeAlias = tuple[tuple[int, int], ...]  # input and index of each record, from 0

_INPUT_BITS: Final = 48  # a number is that of the input, followed by the index of the record
_INDEX: Final = (1 << _INPUT_BITS) - 1

# Stages that choose by position, with the options that decide.
_COMBINED: Final[Mapping[type[Stage], tuple[str, ...]]] = {
    ConcatStage: (),
    ZipStage: ("zip_to_shortest",),
    RoundRobinStage: ("stop_at_shortest", "allow_repeats"),
    SampleStage: ("weights", "seed", "allow_repeats"),
}
_CHOOSING: Final[Mapping[type[Stage], tuple[str, ...]]] = {
    Take: ("num_examples",),
    Skip: ("num_examples",),
    Shard: ("shard_idx", "num_shards", "allow_uneven"),
    ContiguousShard: ("shard_idx", "num_shards", "allow_uneven"),
}
_KEEPING: Final = (Map, Prefetch, RandomMap)  # each item becomes one item, if none fails
_OPTIONS: Final[Mapping[type[Stage], tuple[str, ...]]] = {**_COMBINED, **_CHOOSING}
_MADE: Final[dict[str, Callable[..., Stage]]] = {kind.name: kind for kind in _OPTIONS}


def describe(stage: Stage, inputs: Sequence[str], seeds: Mapping[str, int]) -> Description | None:
    """Return the stages up to ``stage`` as JSON; ``None`` if one does more than choose by position.

    Args:
        stage: The last stage.
        inputs: The paths of the results that the stream reads, in order.
        seeds: The seed of each stage that uses one, by path.
    """
    if type(stage) is ResultRecords:
        return {"input": inputs.index(stage.where)} if stage.where in inputs else None
    if isinstance(stage, _KEEPING) or (stage.transparent and isinstance(stage, UnaryStage)):
        return describe(stage.upstream, inputs, seeds)
    names = _OPTIONS.get(type(stage))
    of = [describe(source, inputs, seeds) for source in stage.inputs]
    if names is None or None in of:
        return None
    options = {name: getattr(stage, name) for name in names}
    if "seed" in options:
        options["seed"] = seeds[stage.path]
    return {"stage": stage.name, "of": of, **options}


class ItemOrigins:
    """The records that each item of a stream was made of; items are counted from 0.

    Args:
        description: The stream, from `describe`.
        rows: The number of records of each input.

    Raises:
        ValueError: The description is of another version.
    """

    def __init__(self, description: Description, rows: Sequence[int]) -> None:
        self._numbers = array("Q")
        self._ends = array("Q")  # of the numbers of each item
        try:
            for item in PositionedStream(_stage(description, rows)):
                self._add(item)
                self._ends.append(len(self._numbers))
        except (KeyError, TypeError, IndexError) as error:
            msg = f"{type(error).__name__}: {error}"
            raise ValueError(msg) from None

    def _add(self, item: "int | list[Any]") -> None:
        if isinstance(item, int):
            self._numbers.append(item)
            return
        for part in item:
            self._add(part)

    def __len__(self) -> int:
        return len(self._ends)

    def of_item(self, item: int) -> Origins:
        """Return the records of an item."""
        first = self._ends[item - 1] if item else 0
        numbers = self._numbers[first : self._ends[item]]
        return tuple((number >> _INPUT_BITS, number & _INDEX) for number in numbers)

    def items_of(self, number: int, record: int) -> Iterator[int]:
        """Yield the items that were made of a record.

        Args:
            number: The index of its input.
            record: Its index there.
        """
        wanted, at = number << _INPUT_BITS | record, 0
        with suppress(ValueError):  # there are no more
            while True:
                at = self._numbers.index(wanted, at) + 1
                yield bisect_left(self._ends, at)


def _stage(description: Description, rows: Sequence[int]) -> Stage:
    if "input" in description:
        first = description["input"] << _INPUT_BITS
        numbers = range(first, first + rows[description["input"]])
        return SequenceSource(cast("tuple[int, ...]", numbers))
    options = {key: value for key, value in description.items() if key not in {"stage", "of"}}
    of = tuple(_stage(source, rows) for source in description["of"])
    name = description["stage"]
    if name == ZipStage.name:
        options |= {"names": (), "flatten": False}
    if name in {kind.name for kind in _CHOOSING}:
        return _MADE[name](*of, **options)
    return _MADE[name](of, **options)
