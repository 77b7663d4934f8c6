"""`JoinOperator`: join two records with the same key."""

from collections.abc import Sequence
from typing import Any, Final

import xxhash

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_HOW: Final = ("left", "inner", "semi", "anti", "outer")
_DUPLICATES: Final = ("error", "first", "last", "all")


class JoinOperator(Operator):
    """The options of a join; see `join.Merge`.

    Args:
        on: Key column, or several.
        right_on: Key of the right side; ``None`` for the same names.
        how: Which records stay.
        duplicates: With several matches: ``error``, ``first``, ``last`` or ``all``.
        columns: Columns that are added; ``None`` for all but the key.
        suffix: Follows the name of an added column that the record already has.
        max_memory_mb: Memory in MB.
        **kwargs: See `Operator`.

    Raises:
        DefinitionError: An option has an unknown value, or the keys have different lengths.
    """

    def __init__(
        self,
        on: Keys,
        *,
        right_on: Keys | None = None,
        how: str = "left",
        duplicates: str = "error",
        columns: Sequence[str] | None = None,
        suffix: str = "_right",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("how", how, _HOW)
        check_choice("duplicates", duplicates, _DUPLICATES)
        left = key_list("on", on)
        right = left if right_on is None else key_list("right_on", right_on)
        if len(left) != len(right):
            msg = f"on is {on!r} and right_on {right_on!r}; give as many columns of both sides"
            raise DefinitionError(msg)
        self._left, self._right = list(map(FieldKey, left)), list(map(FieldKey, right))
        self._key_names = set(right)
        self._how, self._duplicates = how, duplicates
        self._columns, self._suffix = columns, suffix
        self._max_bytes = max_memory_mb << 20

    def _joined(self, left: Record, matches: list[Record]) -> list[Record]:
        """Return the records that a left record becomes with the right ones, in input order."""
        if self._how in {"semi", "anti"}:
            return [left] if bool(matches) == (self._how == "semi") else []
        if len(matches) > 1:
            matches = self._chosen(left, matches)
        if not matches and self._how == "inner":
            return []
        return [self._merged(left, right) for right in matches or [{}]]

    def _chosen(self, left: Record, matches: list[Record]) -> list[Record]:
        match self._duplicates:
            case "first":
                return matches[:1]
            case "last":
                return matches[-1:]
            case "all":
                return matches
        key = [value for column in self._left for value in column.present(left)]
        msg = (
            f"{len(matches)} records of the other side have the key {str(key)[:100]}; choose one "
            "by duplicates='first' or 'last', or take all by 'all'"
        )
        raise ValueError(msg)

    def _merged(self, left: Record, right: Record) -> Record:
        if self._columns is not None:
            added = {name: right.get(name) for name in self._columns}
        else:
            added = {name: value for name, value in right.items() if name not in self._key_names}
        renamed = {
            f"{name}{self._suffix}" if name in left else name: value
            for name, value in added.items()
        }
        return left | renamed


def key_digest(columns: Sequence[FieldKey], record: Record) -> bytes | None:
    """Return a digest of the key of a record; ``None`` if a part is missing or null."""
    values: list[Any] = []
    for column in columns:
        elements = column.present(record)
        if not elements or None in elements:
            return None
        values.append(list(map(_plain, elements)))
    return xxhash.xxh3_128_digest(canonical(values))


def _plain(value: Any) -> Any:
    """Return a number in the form that equal numbers share: 1 for 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
