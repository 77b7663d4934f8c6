"""`Conditions`: the conditions of a search for records, from the fields of its form."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dagster_dataops.pipelines.reporting.excerpts import text_of_value
from dagster_dataops.pipelines.view.records.viewed_file import LineBlock
from dagster_dataops.records import decode_own

MOST: Final = 6  # conditions on columns
_MISSING: Final = object()


def _number(value: object) -> float | None:
    """Return a number, also one in a text; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _compares(test: Callable[[float, float], bool]) -> Callable[[object, str], bool]:
    def holds(value: object, wanted: str) -> bool:
        first, second = _number(value), _number(wanted)
        if first is None or second is None or isinstance(value, str):
            return False
        return test(first, second)

    return holds


def _equals(value: object, wanted: str) -> bool:
    if value is _MISSING:
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(wanted) == float(value)
    return text_of_value(value) == wanted


TESTS: Final[dict[str, Callable[[object, str], bool]]] = {
    "contains": lambda value, wanted: (
        value is not _MISSING and wanted.casefold() in text_of_value(value).casefold()
    ),
    "is": _equals,
    "is not": lambda value, wanted: not _equals(value, wanted),
    "is at least": _compares(lambda first, second: first >= second),
    "is at most": _compares(lambda first, second: first <= second),
    "is missing": lambda value, _: value is _MISSING or value is None,
    "is there": lambda value, _: value is not _MISSING and value is not None,
}
"""The tests of a column, by their name in the form. ``contains`` ignores upper and lower case."""


class Condition(NamedTuple):
    """A test of a column, also of a nested one: ``meta.lang``."""

    column: str
    test: str
    value: str

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Return whether the condition holds for a record."""
        return TESTS[self.test](_at(record, self.column), self.value)


def _at(record: Mapping[str, Any], column: str) -> object:
    if column in record:
        return record[column]
    value: object = record
    for name in column.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return value


@dataclass(frozen=True)
class Conditions:
    """The conditions of a search: a text in any column, and tests of columns."""

    text: str = ""
    columns: tuple[Condition, ...] = ()

    @classmethod
    def of_form(
        cls, text: str, columns: Sequence[str], tests: Sequence[str], values: Sequence[str]
    ) -> "Conditions":
        """Return the conditions of the fields of a form; incomplete ones are left out."""
        rows = zip(columns, tests, values, strict=False)
        chosen = [Condition(*row) for row in rows if row[0] and row[1] in TESTS]
        return cls(text, tuple(chosen[:MOST]))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.text or self.columns)

    def hold(self, record: Mapping[str, Any]) -> bool:
        """Return whether all conditions hold for a record."""
        if not all(condition.holds(record) for condition in self.columns):
            return False
        return not self.text or any(
            self.text.casefold() in text_of_value(value).casefold() for value in record.values()
        )

    def chooser(self, *, ours: bool) -> Callable[[LineBlock], list[int]]:
        """Return a function that chooses lines of a block, by their position in it.

        Most lines that are ``ours``, written by this package, need not be decoded.
        """
        texts = [self.text, *(column.value for column in self.columns if column.test == "contains")]
        plain = [
            text for text in texts if ours and text.isascii() and json.dumps(text) == f'"{text}"'
        ]
        needles = [text.lower().encode() for text in plain if text]

        def chosen(block: LineBlock) -> list[int]:
            if not _may(block.text, needles):
                return []
            lines = enumerate(block.lines())
            return [at for at, line in lines if _may(line, needles) and self._in(line)]

        return chosen

    def _in(self, line: bytes) -> bool:
        try:
            return self.hold(decode_own(line))
        except ValueError:
            return (
                not self.columns
                and self.text.casefold() in line.decode(errors="replace").casefold()
            )


def _may(text: bytes, needles: Sequence[bytes]) -> bool:
    """Return whether lines may hold all texts, without decoding them."""
    if not needles or b"\\" in text or not text.isascii():
        return True
    low = text.lower()
    return all(needle in low for needle in needles)
