"""Check the decisions in files: known ids, possible choices, permitted changes."""

import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.library.review.decision_files import FaultError, Row
from dagster_dataops.library.review.decisions import Decision
from dagster_dataops.library.review.question_files import NEW, text_of
from dagster_dataops.library.review.questions import COMMENT, DECISION, EDITED, REVIEWER, Form

_SHOWN: Final = 80
_LOST: Final = Decimal("5e-15")  # spreadsheets keep 15 digits of a number
_NUMBERS: Final = (int, float)
_MEANT: Final = {
    **{name: name for name in (DECISION, REVIEWER, COMMENT)},
    "comments": COMMENT,
    **dict.fromkeys(("edit", "edits", "edited"), f"{EDITED}<column>"),
}
"""What a person means by a name, by its letters."""


class Asked(NamedTuple):
    """A question that was asked.

    Attributes:
        form: Its fields and choices.
        shown: The values shown, by field.
    """

    form: Form
    shown: dict[str, Any]


def decision_of(row: Row, asked: dict[str, Asked], file: str, *, named: bool) -> Decision | None:
    """Return the decision of a row of a file; ``None`` if it has none.

    Args:
        row: The row.
        asked: The questions, by id.
        file: Name of the file.
        named: Whether each decision must name the reviewer.
    """
    if not isinstance(row.decision, str | None):
        raise FaultError(row.place, f"the decision must be a text; got {row.decision!r:.80}")
    question = asked.get(row.id.strip()) if isinstance(row.id, str) else None
    if question is None:
        reason = f"no question has the id {row.id!r:.80}; leave the ids as they are in the file"
        raise FaultError(row.place, reason)
    _check_shown(row, question)
    edited = _edited(row, question)
    decision = (row.decision or "").strip()
    if not decision:
        if edited:
            raise FaultError(row.place, f"changes {', '.join(edited)} without a decision")
        return None
    if decision not in question.form.choices:
        choices = ", ".join(question.form.choices)
        raise FaultError(row.place, f"{decision[:_SHOWN]!r} is none of the choices: {choices}")
    if named and not row.reviewer:
        raise FaultError(row.place, "names no reviewer, and agreement needs different ones")
    where = f"{file} {row.place}"
    return Decision(row.id.strip(), decision, edited, row.reviewer, row.comment, where)


def _edited(row: Row, question: Asked) -> dict[str, Any]:
    """Return the new values of columns, of the types that they have."""
    if not isinstance(row.edited, dict):
        raise FaultError(row.place, f"'edited' must be an object; got {row.edited!r:.80}")
    edit = question.form.edit
    names = {NEW.format(number): name for number, name in enumerate(edit)}
    edited = {}
    for key, value in row.edited.items():
        name = key if key in edit else names.get(key)
        if name is None:
            allowed = ", ".join(edit) or "no column"
            raise FaultError(row.place, f"changes {key!r}; reviewers may change {allowed}")
        before = question.shown[name]
        if key in names and isinstance(value, str) and value.strip() == text_of(before).strip():
            continue  # as the form of Label Studio shows it
        changed = _typed(row, name, value, before)
        if changed != before:
            edited[name] = changed
    return edited


def _typed(row: Row, name: str, value: Any, before: Any) -> Any:
    """Return a new value of the type of the old one; any JSON if that was ``null``."""
    from_text = isinstance(value, str) and not isinstance(before, str)
    if from_text and before is not None:
        if row.texts and value == text_of(before):
            return before
        try:
            plain = value.lower() if isinstance(before, bool) else value  # a spreadsheet: TRUE
            value = orjson.loads(plain) if row.texts else value
        except ValueError:
            value = str(value)
    if _fits(value, before):
        return value
    kind = type(before).__name__
    raise FaultError(row.place, f"the new value of {name!r} must be a {kind}; got {value!r:.80}")


def _fits(value: Any, before: Any) -> bool:
    if before is None:
        return True
    if type(before) in _NUMBERS:
        return type(value) in _NUMBERS
    return type(value) is type(before)


def _check_shown(row: Row, question: Asked) -> None:
    """Raise a `FaultError` for a value that the person wrote to no effect."""
    for name, cell in row.shown.items():
        meant = None if name in question.shown else _MEANT.get(_plain(name))
        if cell and meant not in {None, name}:
            raise FaultError(row.place, f"{name!r} has no effect; write {meant!r} if it is meant")
    for name, value in question.shown.items():
        if name in row.shown and not _same(row.shown[name], value, texts=row.texts):
            way = f"write the new value into the column '{EDITED}{name}'"
            if name not in question.form.edit:
                way = "restore it, or remove the column from the file"
            reason = f"the cell of {name!r} was changed, which has no effect; {way}"
            raise FaultError(row.place, reason)


def _plain(name: str) -> str:
    """Return the letters of a name in lower case, up to a colon."""
    return "".join(filter(str.isalpha, name.casefold().partition(":")[0]))


def _same(cell: Any, value: Any, *, texts: bool) -> bool:
    """Return whether a cell shows a value, as spreadsheets and other programs write it."""
    if isinstance(cell, str) and (texts or isinstance(value, str)):
        if isinstance(value, bool):
            return cell.strip().casefold() not in {"", str(not value).casefold()}  # or WAHR, VRAI
        text = text_of(value)
        same = _shows_number if type(value) in _NUMBERS else _same_number
        return _words(cell) == _words(text) or same(cell, text)
    if type(cell) in _NUMBERS and type(value) in _NUMBERS:
        return math.isclose(cell, value)
    return bool(cell == value)


def _same_number(cell: str, text: str) -> bool:
    """Return whether a text that is a number is the same one in a cell."""
    try:
        return math.isclose(float(cell.replace(",", ".")), float(text))
    except ValueError:
        return False


def _shows_number(cell: str, text: str) -> bool:
    """Return whether a cell shows a number, rounded to the digits that the cell has."""
    value = Decimal(text)
    for number in _readings(cell):
        last = int(number.as_tuple().exponent)
        with suppress(ArithmeticError):  # an exponent of millions
            kept = max(Decimal(1).scaleb(last) / 2, abs(value) * _LOST)
            if abs(number - value) <= kept:
                return True
    return False


def _words(text: str) -> list[str]:
    """Return the words of a text; programs differ in the forms of characters, too."""
    return unicodedata.normalize("NFC", text).split()


def _readings(cell: str) -> Iterator[Decimal]:
    """Yield the numbers that a cell may mean, with a comma before the fraction or in thousands."""
    compact = "".join(cell.split()).removesuffix("%")
    fraction = re.sub(r"[,.'](?=.*[,.])", "", compact).replace(",", ".")
    for text in (fraction, re.sub(r"[,.']", "", compact)):
        with suppress(ArithmeticError):
            number = Decimal(text)
            if number.is_finite():
                yield number.scaleb(-2) if "%" in cell else number
