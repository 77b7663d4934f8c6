"""`Comparison`: whether a field of a record compares with a value."""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.user_patterns import compiled
from dagster_dataops.records import Record

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "in": lambda item, value: item in value,
    "not in": lambda item, value: item not in value,
}
OPERATIONS: Final = (*_COMPARISONS, "exists", "matches")


class Comparison:
    """Compares a field with a value, as ``filters.Field`` describes it."""

    def __init__(self, key: str, op: str, value: Any) -> None:
        self._op, self._value = op, _checked_value(op, value)
        self._field = FieldKey(key)

    def fits(self, record: Record) -> bool:
        """Return whether all selected elements of a record compare."""
        value = self._field.present(record)
        if self._op == "exists":
            return bool(value) == (self._value is not False)
        if not value:
            return self._op in {"!=", "not in"}
        return all(map(self._compares, value))

    def _compares(self, value: Any) -> bool:
        if self._op == "matches":
            return isinstance(value, str) and self._value.search(value) is not None
        if value is None and self._op in {"<", "<=", ">", ">="}:
            return False
        return bool(_COMPARISONS[self._op](value, self._value))


def _checked_value(op: str, value: Any) -> Any:
    """Return the value to compare with, a pattern compiled."""
    if op == "matches":
        return compiled(value)
    if op in {"in", "not in"} and not isinstance(value, (list, tuple, set, frozenset, str)):
        msg = f"value of op {op!r} must be a list; got {type(value).__name__}"
        raise DefinitionError(msg)
    return value
