"""Which ranks can load a state, and `merged_states`: the one state of all ranks.

All ranks of a loader have the same position while they are in step. The stages after the sharding
mark decide whether they are, and whether another number of ranks can go on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dagster_dataops.errors import StreamStateError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.ranks import WorldRank
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages
from dagster_dataops.streams.positioned_stream import PositionedStream
from dagster_dataops.streams.sharding.marks import ShardingMark
from dagster_dataops.streams.stages.grouping.buckets import Bucket
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.taking import Skip
from dagster_dataops.training.loading.rank_stage import RankStage

_MAX_SHOWN = 200  # characters of a value in an error


@dataclass(frozen=True)
class StateRanks:
    """The ranks that can load the states of a stream.

    In a state it is an object: empty if any number of ranks can load it. Else ``of`` is the number
    of ranks that took it; with ``rank``, it is the position of that rank alone.

    Attributes:
        place: The rank of this process, and the number of ranks.
        out_of_step: The stages for which ranks that have read as many items can be at different
            positions.
        fixed: The stages that another number of ranks cannot go on with.
        several: The stages that make several items of one, with which another number of ranks
            cannot go on in between.
    """

    place: WorldRank
    out_of_step: tuple[str, ...]
    fixed: tuple[str, ...]
    several: tuple[str, ...]

    @classmethod
    def of(cls, stream: PositionedStream) -> Self:
        """Return those of a stream of a loader."""
        ranks = [stage for stage in distinct_stages(stream.stage) if isinstance(stage, RankStage)]
        place = WorldRank(ranks[0].rank, ranks[0].world_size) if ranks else WorldRank(0, 1)
        even = all(rank.ending != "exact" for rank in ranks)
        after = _after_the_mark(stream.stage)
        fails = () if stream.on_error == "raise" else (f"on_error={stream.on_error!r}",)
        moved = [stage.name for stage in after if not _keeps_step(stage, even=even)]
        fixed = _fixed(after)
        several = [stage.name for stage in after if stage.expands]
        out_of_step = (*fails, *moved) if place.world_size > 1 else ()
        return cls(place, out_of_step, tuple(fixed), tuple(several))

    def state(self, *, starts_epoch: bool) -> dict[str, Any] | None:
        """Return the object in a state; ``None`` if all states of the stream are for all ranks.

        Args:
            starts_epoch: Whether no rank has read an item of the epoch.
        """
        if not self.out_of_step and not self.fixed and not self.several:
            return None
        ranks: dict[str, Any] = {}
        if not starts_epoch or any("on_error" in stage for stage in self.out_of_step):
            ranks["of"] = self.place.world_size
            if self.out_of_step:
                ranks["rank"] = self.place.rank
        return ranks

    def check(self, saved: Any, *, splits_element: bool) -> None:
        """Refuse the state of other ranks, if this rank cannot go on from it.

        Args:
            saved: The object in the state.
            splits_element: Whether its position is between several items that one item became.
        """
        if not isinstance(saved, Mapping):
            msg = f"the loader's state is damaged: its ranks are {saved!r}"
            raise StreamStateError(msg)
        rank, number = self.place
        if "rank" in saved and (saved["rank"], saved["of"]) != self.place:
            stages = _listed(self.out_of_step)
            because = f" ({stages} after the sharding mark)" if stages else ""
            reason = (
                f"it is that of rank {saved['rank']} of {saved['of']}, this is rank {rank} of "
                f"{number}, and ranks can be at different positions{because}: load the state of "
                "this rank, or that of merged_states()"
            )
            raise StreamStateError(reason)
        fixed = self.fixed or (self.several if splits_element else ())
        if fixed and saved.get("of", number) != number:
            reason = (
                f"it was taken with {counted(saved['of'], 'ranks')}, and here "
                f"{'is' if number == 1 else 'are'} {counted(number, 'ranks')}: items would be lost "
                f"or doubled, because each rank has a {_listed(fixed)} of its own. Load it "
                "with that number, or a state between two epochs; or put the sharding mark behind"
            )
            raise StreamStateError(reason)


def _after_the_mark(last: Stage) -> list[Stage]:
    """Return the stages that each rank has for itself."""
    stages: list[Stage] = []
    for stage in distinct_stages(last):
        if isinstance(stage, (RankStage, ShardingMark)) or any(
            source in stages for source in stage.inputs
        ):
            stages.append(stage)
    return stages


def _fixed(after: Sequence[Stage]) -> list[str]:
    """Return the names of stages that another number of ranks cannot go on with, sources first.

    Skipped failures are counted in the state: ranks whose states are equal have read as many lists.
    """
    repeats = any(isinstance(stage, Repeat) for stage in after)
    names, is_grouped = [], False  # lists of other ranks have other items
    for stage in after:
        drops = not _keeps_step(stage, even=True)  # lists, depending on their items
        if (
            not stage.is_elastic()
            or (repeats and isinstance(stage, Skip))
            or (is_grouped and drops and not stage.transparent)
        ):
            names.append(stage.name)
        is_grouped = is_grouped or isinstance(stage, Bucket)
    return names


def _keeps_step(stage: Stage, *, even: bool) -> bool:
    return stage.keeps_step or (even and isinstance(stage, Repeat))  # its epochs have equal lengths


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def merged_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state of a loader that all its ranks have.

    Without ``filter`` and the like after the sharding mark, it is equal to the state of each rank.
    So to save the state of rank 0 is enough then, as long as the ranks are in step.

    Args:
        states: The state of each rank, in the order of the ranks.

    Raises:
        StreamStateError: There are none, or they differ; the error names the first rank that does.
    """
    if not states:
        msg = "there are no states to merge; give that of each rank"
        raise StreamStateError(msg)
    for rank, state in enumerate(states):
        _check_rank(rank, len(states), state)
    merged = [_without_rank(state) for state in states]
    for rank, state in enumerate(merged):
        if state != merged[0]:
            raise StreamStateError(_difference(rank, merged[0], state))
    return merged[0]


def _check_rank(rank: int, number: int, state: Mapping[str, Any]) -> None:
    """Refuse a state that is not in the place of its rank."""
    ranks = state.get("ranks") or {}
    place = (ranks.get("rank", rank), ranks.get("of", number))
    if place != (rank, number):
        msg = (
            f"the state at place {rank} of {number} is that of rank {place[0]} of {place[1]}; give "
            "that of each rank, in the order of the ranks"
        )
        raise StreamStateError(msg)


def _without_rank(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state as that of all ranks, if all have it."""
    copy = dict(state)
    if copy.get("ranks"):
        copy["ranks"] = {"of": copy["ranks"]["of"]}
    return copy


def _difference(rank: int, first: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    key = next(key for key in {**first, **state} if first.get(key) != state.get(key))
    of_first, of_rank = (_shown(key, content) for content in (first, state))
    return (
        f"the ranks are not in step: the {key} of rank 0 is {of_first}, that of rank {rank} is "
        f"{of_rank}. Take the states after the same number of items on all ranks. If items are "
        "dropped or added after the sharding mark, put the mark behind that stage"
    )


def _shown(key: str, state: Mapping[str, Any]) -> str:
    value = state.get(key)
    shown = value.get("position") if key == "stream" and isinstance(value, Mapping) else value
    text = json.dumps(shown, default=repr)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
