"""Map the keys in an operator's options to each other and to columns.

A key is the name of a column or a path inside one: ``meta.lang``, ``texts[*].body``. Dagster's
lineage has columns only; the table for people shows the whole key.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from dagster_dataops.errors import SelectorSyntaxError
from dagster_dataops.foundation.selectors.grammar import parse, path_text
from dagster_dataops.operators.chains.chain import ChainOptions

_STEPS: Final = re.compile(r"[.\[]")


def written_keys(options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Map every key that an operator writes to the keys that it reads for it.

    Equal numbers of outputs and inputs are matched pair by pair; otherwise every output depends on
    every input. Without ``output_key`` inputs are written in place. A chain writes the columns that
    its parts write, from the columns of its input that they read; both are unknown if a part has no
    such options.
    """
    if isinstance(options, ChainOptions):
        return _written_by_parts([written_keys(option) for option in options.values()])
    read = names_in(options.get("input_key"))
    written = names_in(options.get("output_key")) or read
    if len(read) == len(written):
        return {to: [source] for source, to in zip(read, written, strict=True)}
    return dict.fromkeys(written, read) if read else {}


def _written_by_parts(parts: list[dict[str, list[str]]]) -> dict[str, list[str]]:
    if not all(parts):
        return {}
    written: dict[str, list[str]] = {}
    for part in parts:
        keys = {
            key: list(dict.fromkeys(first for name in read for first in written.get(name, [name])))
            for key, read in part.items()
        }
        written |= keys
    return written


def names_in(value: object) -> list[str]:
    """Return the keys in the value of an option: none, one or several."""
    names = value if isinstance(value, (list, tuple)) else [value]
    return [path for name in names if isinstance(name, str) for path in _paths(name)]


def _paths(key: str) -> list[str]:
    """Return the paths of a selector; a key that is not a selector is returned as it is."""
    try:
        return [path_text(path) for path in parse(key)]
    except SelectorSyntaxError:
        return [key]


def column_of(key: str, columns: Collection[str]) -> str:
    """Return the column of a key: the column of that name, else the part before the path."""
    if key in columns:
        return key
    return _STEPS.split(key, maxsplit=1)[0] or key
