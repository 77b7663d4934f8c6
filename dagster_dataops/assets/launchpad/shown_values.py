"""Values that the launchpad can show, and the check whether a launch has changed one."""

import math
from collections.abc import Mapping
from typing import Any, Final

import orjson

_EXACT: Final = 2**53  # larger integers are rounded in a browser
_MAX_BYTES: Final = 4000  # longer values cannot be edited in a launchpad


def is_showable(value: object) -> bool:
    """Return whether ``value`` is JSON that the launchpad returns unchanged."""
    try:
        return _is_json(value) and len(orjson.dumps(value)) <= _MAX_BYTES
    except (TypeError, RecursionError):  # a lone surrogate, or nested too deeply
        return False


def _is_json(value: object) -> bool:
    kind = type(value)
    if isinstance(value, int) and kind is int:
        return abs(value) <= _EXACT
    if isinstance(value, float):
        return kind is float and math.isfinite(value)
    if isinstance(value, list) and kind is list:
        return all(map(_is_json, value))
    if isinstance(value, dict) and kind is dict:
        return all(_is_text(key) and _is_json(item) for key, item in value.items())
    return kind in {bool, type(None)} or _is_text(value)


def _is_text(value: object) -> bool:
    """Return whether YAML keeps a text; it turns some control characters into line ends."""
    return type(value) is str and all(c.isprintable() or c in "\n\t" for c in value)


def same_value(first: Any, other: Any) -> bool:
    """Return whether JSON values are equal. The launchpad writes 1.0 as 1; true is not 1."""
    if isinstance(first, bool) or isinstance(other, bool):
        return first is other
    if isinstance(first, list) and isinstance(other, list):
        return len(first) == len(other) and all(map(same_value, first, other))
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        return first.keys() == other.keys() and all(
            same_value(first[key], other[key]) for key in first
        )
    numbers = isinstance(first, (int, float)) and isinstance(other, (int, float))
    return (numbers or type(first) is type(other)) and bool(first == other)


def as_filled_in(value: Any) -> Any:
    """Return ``value`` as a new launchpad shows it: mappings without null and empty values."""
    if not isinstance(value, Mapping):
        return value
    inner = {key: as_filled_in(item) for key, item in value.items()}
    return {key: item for key, item in inner.items() if item is not None and item != {}}


def is_unchanged(value: Any, shown: Any) -> bool:
    """Return whether the launchpad showed ``shown`` and gave it back, as ``value``, unedited."""
    return same_value(value, shown) or same_value(value, as_filled_in(shown))


def in_order_of(value: Any, shown: Any) -> Any:
    """Return a value with the entries of its mappings in the order of the shown value.

    Dagster stores the configuration of a run with sorted keys, so the order in which a launch gave
    them is lost when another process runs it. New keys are sorted and follow those that are shown.
    """
    if isinstance(value, Mapping):
        known = shown if isinstance(shown, Mapping) else {}
        names = [*(key for key in known if key in value), *sorted(value.keys() - known.keys())]
        return {key: in_order_of(value[key], known.get(key)) for key in names}
    if isinstance(value, list):
        items = [*shown] if isinstance(shown, list) else []
        items += [None] * (len(value) - len(items))
        return [in_order_of(*pair) for pair in zip(value, items, strict=False)]
    return value
