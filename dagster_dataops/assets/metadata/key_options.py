"""Keys as operators' options give them: what they write from what, and the column they mean.

A key is the name of a column, or leads into one: ``meta.lang``, ``texts[*].body``. Dagster knows
columns alone, so lineage is told of the column, and people are shown the whole key.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from dagster_dataops.errors import SelectorSyntaxError
from dagster_dataops.selectors.grammar import parse, path_text

_STEPS: Final = re.compile(r"[.\[]")


def written_keys(options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the keys that an operator writes, each with those it reads for it.

    As many outputs as inputs belong together pair by pair; otherwise every output comes of
    every input. No ``output_key`` means that inputs are written in place.
    """
    read = _names(options.get("input_key"))
    path_text = _names(options.get("output_key")) or read
    if len(read) == len(path_text):
        return {to: [source] for source, to in zip(read, path_text, strict=True)}
    return dict.fromkeys(path_text, read) if read else {}


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return _paths(value)
    if isinstance(value, (list, tuple)):
        return [path for name in value if isinstance(name, str) for path in _paths(name)]
    return []


def _paths(key: str) -> list[str]:
    """Return the paths of a selector, one after the other; a key that is none as it is."""
    try:
        return [path_text(path) for path in parse(key)]
    except SelectorSyntaxError:
        return [key]


def column_of(key: str, columns: Collection[str]) -> str:
    """Return the column that a key means: one of that very name, else what stands before its path.

    Args:
        key: Such as ``meta.lang``.
        columns: Those that are known.
    """
    if key in columns:
        return key
    return _STEPS.split(key, maxsplit=1)[0] or key
