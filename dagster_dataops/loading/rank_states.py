"""`merged_states`: the one state of all ranks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dagster_dataops.errors import StreamStateError

_MAX_SHOWN = 200  # characters of a value in an error


def merged_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state of a loader that all its ranks have.

    It is equal to the state of each rank. So to save the state of rank 0 is enough, as long as the
    ranks are in step.

    Args:
        states: The state of each rank, in the order of the ranks.

    Raises:
        StreamStateError: There are none, or they differ; the error names the first rank that does.
    """
    if not states:
        msg = "there are no states to merge; give that of each rank"
        raise StreamStateError(msg)
    first = dict(states[0])
    for rank, state in enumerate(states):
        if state != first:
            raise StreamStateError(_difference(rank, first, state))
    return first


def _difference(rank: int, first: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    key = next(key for key in {**first, **state} if first.get(key) != state.get(key))
    of_first, of_rank = (_shown(key, one) for one in (first, state))
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
