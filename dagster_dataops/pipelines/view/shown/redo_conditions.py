"""The condition that chooses the records which a page of the view shows, to process them again.

A filter of a page and a condition of `resume` are not the same language. Where a condition cannot
say what a filter says, the result tells why; where it chooses a little more or less, it tells that.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.checkpoints.resume.record_condition import (
    RESULT,
    Comparison,
    Joined,
    Literal,
    Name,
    Negation,
    RecordCondition,
    Test,
    Truth,
)
from dagster_dataops.errors import ConditionSyntaxError
from dagster_dataops.pipelines.view.records.conditions import Condition, Conditions
from dagster_dataops.pipelines.view.records.failed_records import FailedGroup

_DROPPED: Final = Truth(Name("", ("dropped",)))
_FAILED: Final = Truth(Name("", ("failed",)))
_SIGNS: Final = {"is at least": ">=", "is at most": "<="}
_OPPOSITES: Final = frozenset({"is not", "is missing", "is there"})  # hold without a result line
_SPECIAL: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_WHOLE: Final = re.compile(r"-?\d{1,18}")
_CONSTANTS: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class RedoCondition:
    """A condition for the records of a page.

    Attributes:
        text: The condition; empty if no condition chooses these records.
        reason: Why there is none.
        notes: How its choice differs from the records of the page.
    """

    text: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()


class _NoConditionError(Exception):
    """No condition says what a filter says."""


def of_dropped(reasons: Sequence[str] | None, *, chain: bool) -> RedoCondition:
    """Return the condition for dropped records.

    Args:
        reasons: The reasons of each record, empty for a drop without a reason; ``None`` for all
            dropped records.
        chain: Whether the operator is a chain.
    """
    notes = []
    if chain:
        notes.append("Records of which a part was dropped and a part was kept are chosen, too.")
    if reasons is None:
        return _written([_DROPPED], notes)
    if len(reasons) > 1:
        notes.append("Records with further reasons are chosen, too.")
    name = Name("", ("drop_reason",))
    return _written([Comparison(name, "==", Literal(reason)) for reason in reasons or [""]], notes)


def of_failed(group: FailedGroup | None, groups: Sequence[FailedGroup]) -> RedoCondition:
    """Return the condition for the failed records of a group, or for all without one."""
    if group is None:
        return _written([_FAILED], [])
    if not group.form and not group.message and group.exception == "others":
        return RedoCondition(reason="they have too many causes to name them.")
    same = [other for other in groups if other.exception == group.exception and other is not group]
    tests: list[Test] = [Comparison(Name("", ("error_type",)), "==", Literal(group.exception))]
    if any(other.form == group.form for other in same):
        return RedoCondition(
            reason="their exceptions differ from others by the part of the chain alone, and "
            "conditions have no name for the part that failed."
        )
    notes = []
    if same:
        tests.append(Comparison(Name("", ("error",)), "matches", Literal(group.pattern)))
        if any(re.search(group.pattern, other.message) for other in same):
            notes.append("Records whose long message begins in the same way are chosen, too.")
    return _written(tests, notes)


def of_search(conditions: Conditions, columns: Collection[str], *, chain: bool) -> RedoCondition:
    """Return the condition for records whose result lines a search finds."""
    if conditions.text:
        return RedoCondition(
            reason="a condition names its columns. Search in one column instead of in all."
        )
    try:
        tests = [_test(condition, columns) for condition in conditions.columns]
    except _NoConditionError as refused:
        return RedoCondition(reason=f"{refused}.")
    notes = list(_notes(conditions.columns, chain=chain))
    if any(condition.test in _OPPOSITES for condition in conditions.columns):
        tests += [Negation(_DROPPED), Negation(_FAILED)]
    return _written(tests, notes)


def _notes(conditions: Sequence[Condition], *, chain: bool) -> Iterator[str]:
    if any(condition.test == "contains" for condition in conditions):
        yield "The condition looks into texts only, not into numbers, lists and objects."
    if len(conditions) > 1 or any(condition.test in _OPPOSITES for condition in conditions):
        yield (
            "Of a record with several result lines, each comparison may hold for another line; "
            "one with `!=` or `not in` holds if it holds for all of them."
        )
    if chain and any(condition.test in _OPPOSITES for condition in conditions):
        yield "Records of which a part was dropped are not chosen."


def _test(condition: Condition, columns: Collection[str]) -> Test:
    """Return the test of a condition on a column."""
    name = Name(RESULT, _path(condition.column, columns))
    value = condition.value
    if condition.test == "contains":
        if not value:
            msg = "it asks for an empty text; use `is there`"
            raise _NoConditionError(msg)
        if value.lower() == value.upper():
            return Comparison(name, "contains", Literal(value))
        pattern = _SPECIAL.sub(r"\\\g<0>", value)
        return Comparison(name, "matches", Literal(f"(?i){pattern}"))
    if condition.test in _SIGNS:
        number = _number(value)
        if number is None:
            msg = f"{value!r} is no number"
            raise _NoConditionError(msg)
        return Comparison(name, _SIGNS[condition.test], Literal(number))
    if condition.test in {"is missing", "is there"}:
        sign = "==" if condition.test == "is missing" else "!="
        return Comparison(name, sign, Literal(None))
    return _equality(name, value, equal=condition.test == "is")


def _equality(name: Name, value: str, *, equal: bool) -> Test:
    """Return the test whether a column is a text, or the value that has this text."""
    if value == "null":
        msg = "the value null is that of a missing column in conditions; use `is missing`"
        raise _NoConditionError(msg)
    if value[:1] in {"[", "{"} and _is_json(value):
        msg = "conditions compare no lists and objects"
        raise _NoConditionError(msg)
    also: list[Any] = [_CONSTANTS[value]] if value in _CONSTANTS else []
    number = _number(value)
    also += [] if number is None else [number]
    if also:
        return Comparison(name, "in" if equal else "not in", Literal((*also, value)))
    return Comparison(name, "==" if equal else "!=", Literal(value))


def _path(column: str, columns: Collection[str]) -> tuple[str, ...]:
    path = (column,) if column in columns else tuple(column.split("."))
    if any(not key or (len(path) > 1 and key.isdecimal()) for key in path):
        msg = f"conditions read the column {column!r} in another way: numbers are places in lists"
        raise _NoConditionError(msg)
    return path


def _number(text: str) -> float | None:
    """Return a number that conditions can hold; ``None`` for anything else."""
    if _WHOLE.fullmatch(text.strip()) and text.isascii():
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _written(tests: Sequence[Test], notes: Iterable[str]) -> RedoCondition:
    """Return a condition, if it is the same once it was read again."""
    test = tests[0] if len(tests) == 1 else Joined("and", tuple(tests))
    text = str(test)
    try:
        if RecordCondition.parse(text).test == test:
            return RedoCondition(text, notes=tuple(notes))
        reason = "it would be read in another way"
    except ConditionSyntaxError as error:
        reason = error.reason
    return RedoCondition(reason=f"their condition cannot be written: {reason}.")
