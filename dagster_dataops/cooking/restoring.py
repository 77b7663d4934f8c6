"""``restore_record``: make one record of a crude dataset again, alone."""

from collections.abc import Sequence
from typing import Any, Protocol

from dagster_dataops.cooking.cook_stage import Cook
from dagster_dataops.cooking.cookers import listed_cookers
from dagster_dataops.cooking.crude_sources import CrudeSource
from dagster_dataops.errors import UnknownSampleError
from dagster_dataops.streams.core.stage import Stage, UnaryStage
from dagster_dataops.streams.stages.grouping.window_packing import PACK, Pack, packs_of
from dagster_dataops.streams.stages.mapping import Filter, Map

_KEY_PARTS = 3  # dataset, shard and key


class Restorable(Protocol):
    """A stream, complete or not."""

    @property
    def stage(self) -> Stage:
        """The last stage."""
        ...


def restore_record(dataset: Restorable, restore_key: Sequence[Any], cookers: Any = None) -> Any:
    """Return one record of a stream again, by its ``__restore_key__``.

    Only the sample of that key is read. It is cooked, mapped and filtered as in the stream. Of a
    pack its samples are made again, and packed.

    Args:
        dataset: The stream: ``crude(...)`` for the sample, ``crude(...).cook(...)`` for the record.
        restore_key: The key ``[dataset, shard, key]``; of a pack ``["pack", key, ...]``.
        cookers: The cookers of a record that an operator ``cook(...)`` made; ``None`` to use those
            of the stream.

    Raises:
        UnknownSampleError: The dataset has no such sample.
    """
    return _restored(dataset.stage, restore_key, cookers)


def _restored(stage: Stage, restore_key: Sequence[Any], cookers: Any) -> Any:
    given: object = restore_key
    if isinstance(given, (list, tuple)) and given and given[0] == PACK:
        return _packed(stage, restore_key, cookers)
    place, shard, key = _checked(restore_key)
    if cookers is not None:
        stage = Cook(stage, listed_cookers(cookers))
    chains = [one for one in _chains(stage) if isinstance(one[0], CrudeSource)]
    known = ", ".join(sorted({one[0].place for one in chains})) or "no crude dataset"
    failure = UnknownSampleError(place, key, f"the stream reads other data: {known}")
    for chain in chains:
        if chain[0].place != place:
            continue
        try:
            records = _made_by(chain, shard, key)
        except UnknownSampleError as error:  # another source of the same dataset may have it
            failure = error
            continue
        if records:
            return records[0]
        failure = UnknownSampleError(place, key, "the stream leaves the sample out")
    raise failure


def _packed(stage: Stage, restore_key: Sequence[Any], cookers: Any) -> Any:
    """Return a pack again; its key ends with a number if its group made several."""
    behind: list[Stage] = []
    while not isinstance(stage, Pack):
        if not isinstance(stage, UnaryStage):
            raise UnknownSampleError("restore_record", restore_key, "the stream packs nothing")
        behind.insert(0, stage)
        stage = stage.upstream
    _, *keys = restore_key
    number = keys.pop() if keys and isinstance(keys[-1], int) else 0
    group = [_restored(stage.upstream, key, cookers) for key in keys]
    packs = packs_of(stage.pack, group)
    if number >= len(packs):
        raise UnknownSampleError("restore_record", restore_key, "its samples make fewer packs")
    records = [packs[number]]
    for one in behind:
        records = _applied(one, records)
    if not records:
        raise UnknownSampleError("restore_record", restore_key, "the stream leaves the pack out")
    return records[0]


def _made_by(chain: list[Any], shard: str, key: str) -> list[Any]:
    """Return the records that a source and the stages behind it make of one sample."""
    records = [chain[0].sample_of_key(shard, key)]
    for stage in chain[1:]:
        records = _applied(stage, records)
    return records


def _checked(restore_key: Sequence[Any]) -> tuple[str, str, str]:
    is_list = isinstance(restore_key, (list, tuple)) and len(restore_key) == _KEY_PARTS
    if not is_list or not all(isinstance(one, str) for one in restore_key):
        reason = "a restore key is [dataset, shard, key], as a record has it in __restore_key__"
        raise UnknownSampleError("restore_record", restore_key, reason)
    place, shard, key = restore_key
    return place, shard, key


def _chains(stage: Stage) -> "list[list[Any]]":
    """Return the stages from each source to the last stage."""
    if not stage.inputs:
        return [[stage]]
    return [[*chain, stage] for one in stage.inputs for chain in _chains(one)]


def _applied(stage: Any, records: list[Any]) -> list[Any]:
    """Return the output of a stage for records; stages that only choose and order keep them."""
    if isinstance(stage, Filter):
        wanted = stage.fn if stage.selector is None else _of_selected(stage)
        return [one for one in records if wanted(one)]
    if isinstance(stage, Cook):
        cook = stage.function()
        found = [cook(one) for one in records]
        return [one for part in found for one in (part if isinstance(part, list) else [part])]
    function = getattr(stage, "functions", None)
    if function is not None:
        mapping = Map(stage.upstream, stage.functions, stage.selector).function()
        return [mapping(one) for one in records]
    return records


def _of_selected(stage: Filter) -> Any:
    assert stage.selector is not None  # noqa: S101 - checked by the caller
    get, fn = stage.selector.get, stage.fn
    return lambda record: fn(get(record))
