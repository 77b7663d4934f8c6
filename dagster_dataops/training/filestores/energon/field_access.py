"""Parse the expressions of ``field_map``, and read the values that they name from a sample.

``png`` names a part, ``json[caption]`` an element of a part, ``json[boxes][0]`` an element of an
element, and ``png,jpg`` the first of these parts that the sample has.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

_EXPRESSION: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]+\])*)")
_ELEMENT: Final = re.compile(r"\[([^\[\]]+)\]")

Steps: TypeAlias = tuple[str, ...]
"""A part, and the keys or numbers that lead to the value within it."""


def alternatives(expression: str) -> tuple[Steps, ...]:
    """Return the ways to a value, in the order in which they are tried.

    Raises:
        ValueError: The expression is malformed.
    """
    choices = []
    for text in expression.split(","):
        match = _EXPRESSION.fullmatch(text.strip())
        if match is None:
            msg = f"{expression!r} is no place in a sample; write a part, or such as json[caption]"
            raise ValueError(msg)
        choices.append((match[1], *_ELEMENT.findall(match[2])))
    return tuple(choices)


def value_at(sample: Mapping[str, Any], ways: Sequence[Steps]) -> Any:
    """Return the first value that a sample has.

    Raises:
        KeyError: It has none of them.
    """
    for way in ways:
        try:
            return _followed(sample, way)
        except (LookupError, ValueError, TypeError):
            continue
    wanted = " or ".join(_shown(way) for way in ways)
    parts = ", ".join(name for name in sample if not name.startswith("__")) or "none"
    msg = f"sample {sample.get('__key__')!r} has no {wanted}; its parts: {parts}"
    raise KeyError(msg)


def _followed(value: Any, way: Steps) -> Any:
    for step in way:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _shown(way: Steps) -> str:
    return way[0] + "".join(f"[{step}]" for step in way[1:])
