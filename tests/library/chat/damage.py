"""JSON values that are damaged at random, so that each kind of value stands in each place."""

import copy
import random
from collections.abc import Iterator
from typing import Any

JUNK = [
    None, 1, -1.5, True, "", "a", "[", "[]", "{}", [], {}, [1], {"a": 1}, ["a"], [None], [{}],
    {"type": "text"}, {"role": "user"}, "data:", "user", "assistant", "tool", "text",
]  # fmt: skip
KEYS = ["x", "role", "content", "value", "from", "name", "id", "type", "tool_calls", "weight"]


def damaged(value: Any, chance: random.Random) -> Any:
    """Return a copy of a value with one to three parts removed, doubled or replaced."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = [place for place in _places(value) if place]
        if not places:
            break
        *path, last = chance.choice(places)
        holder = value
        for step in path:
            holder = holder[step]
        _damage(holder, last, chance)
    return value


def _damage(holder: Any, last: Any, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.3:
        del holder[last]
    elif kind < 0.4 and isinstance(holder, list):
        holder.insert(last, copy.deepcopy(holder[last]))
    elif kind < 0.5 and isinstance(holder, dict):
        holder[chance.choice(KEYS)] = copy.deepcopy(chance.choice(JUNK))
    else:
        holder[last] = copy.deepcopy(chance.choice(JUNK))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places(item, (*path, number))
