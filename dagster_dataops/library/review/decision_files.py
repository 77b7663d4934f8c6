"""Read the decisions of people from files: jsonl, CSV of any spreadsheet, Label Studio's JSON."""

import csv
import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.library.review.question_files import FORMULA
from dagster_dataops.library.review.questions import (
    CHANGED,
    COMMENT,
    DECISION,
    EDITED,
    ID,
    NEW_VALUES,
    REVIEWER,
)

_DELIMITERS: Final = ",;\t|"
_MARKS: Final = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
}
_NEEDED: Final = (ID, DECISION)
_FIELDS: Final = "fields"
_OF_EXPORTS: Final = ("annotation_id", "annotator")
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [])
_SHOWN: Final = 80
_LIMIT: Final = threading.Lock()  # csv.field_size_limit is of the process


class FaultError(Exception):
    """A place of a file that cannot be read.

    Args:
        place: The line, or the number of a task.
        reason: The error, and what to do.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason


class Row(NamedTuple):
    """The entry of a file for one question.

    Attributes:
        place: The line, or the number of a task.
        id: The id of the question.
        decision: The decision; empty if there is none.
        edited: New values by column; by their number as a text in a form of Label Studio.
        reviewer: The person; may be empty.
        comment: A text of the person.
        shown: All other values that are not empty: those of the fields that a person saw, and
            those which nothing reads.
        texts: Whether all values are texts, as in a spreadsheet.
    """

    place: str
    id: Any
    decision: Any
    edited: Any
    reviewer: str
    comment: str
    shown: Mapping[str, Any] = {}
    texts: bool = False


def rows_in(path: Path) -> Iterator[Row]:
    """Yield the rows of a file with decisions.

    Raises:
        FaultError: The file cannot be read from here on.
        StorageError: The file cannot be read at all.
    """
    with storage(path, "read the decisions"):
        content = path.read_bytes()
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            yield from _lines(content)
        case ".json":
            yield from _tasks(content)
        case _:
            yield from _cells(_decoded(content))


READ: Final = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv"})
"""The endings of files with decisions."""


def _decoded(content: bytes) -> str:
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = "is no UTF-8; save the file as 'CSV UTF-8'"
        raise FaultError(f"line {line}", reason) from None


def _lines(content: bytes) -> Iterator[Row]:
    for number, line in enumerate(_decoded(content).split("\n"), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        row = _json(line, place, "a line with one JSON object; is the file written to the end?")
        yield _flat(row, place)


def _json(text: str, place: str, wanted: str) -> Any:
    try:
        value = orjson.loads(text)
        json.loads(text, object_pairs_hook=_object_at(place))
    except (ValueError, RecursionError) as error:
        raise FaultError(place, f"is not {wanted} ({error}): {text[:_SHOWN]!r}") from None
    return value


def _object_at(place: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return a function that makes an object, and refuses a name that it has twice."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            double = next(name for name in names if names.count(name) > 1)
            raise FaultError(place, f"has {double!r} twice in one object; leave one")
        return dict(pairs)

    return object_of


def _flat(row: Any, place: str) -> Row:
    """Return the row of an object with the fields of the files of questions."""
    if not isinstance(row, dict) or ID not in row:
        raise FaultError(place, f"must be an object with {ID!r} and {DECISION!r}; got {row!r:.80}")
    if DECISION not in row:
        raise FaultError(place, f"lacks {DECISION!r}; it has {', '.join(map(str, row))}")
    edited, fields = row.get(NEW_VALUES) or {}, row.get(_FIELDS) or {}
    if not isinstance(fields, dict):
        raise FaultError(place, f"{_FIELDS!r} must be an object; got {fields!r:.80}")
    if isinstance(edited, dict):
        edited = _changes_of(row) | edited
    reviewer, comment = row.get(REVIEWER, row.get("annotator")), row.get(COMMENT)
    person = [_text(value) for value in (reviewer, comment)]
    seen = _others(row) | fields
    return Row(place, row[ID], row[DECISION], edited, person[0], person[1], seen)


def _changes_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new values in fields that are named as the columns of a spreadsheet."""
    return {
        name.removeprefix(EDITED): value for name, value in row.items() if name.startswith(EDITED)
    }


def _others(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not empty and tell no change; none in an export.

    Label Studio has names of its own, such as ``id``, and shows the fields by their numbers.
    """
    if not row.keys().isdisjoint(_OF_EXPORTS):
        return {}
    told = (NEW_VALUES, _FIELDS)
    return {
        name: value
        for name, value in row.items()
        if value not in _EMPTY and name not in told and not CHANGED.fullmatch(name)
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):  # a user of Label Studio
        value = value.get("email") or value.get("id")
    return "" if value is None else str(value).strip()


def _cells(text: str) -> Iterator[Row]:
    """Yield the rows of a spreadsheet; a cell may have several lines."""
    text, skipped, delimiter = _delimited(text)
    with _cells_of_any_length(text):
        rows = list(_numbered(text, skipped, delimiter))
    if not rows:
        raise FaultError("line 1", "is empty; the first line names the columns")
    header = [name.strip() for name in rows[0][1]]
    _check_header(header)
    _check_end(text, header, *rows[-1])
    for place, cells in rows[1:]:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(header) and any(cell.strip() for cell in cells[len(header) :]):
            raise FaultError(place, f"has {len(cells)} cells, and the first line {len(header)}")
        yield _row_of(place, dict(zip(header, cells, strict=False)))


@contextmanager
def _cells_of_any_length(text: str) -> Iterator[None]:
    """Set the limit of a cell, which all threads share, to the length of a text."""
    with _LIMIT:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, len(text)))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _delimited(text: str) -> tuple[str, int, str]:
    """Return the text of a spreadsheet, the number of lines before it, and its delimiter."""
    first, _, rest = text.partition("\n")
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:
        return rest, 1, first.strip()[-1]
    counts = {
        delimiter: len({ID, DECISION} & set(_split(first, delimiter))) for delimiter in _DELIMITERS
    }
    return text, 0, max(counts, key=lambda delimiter: counts[delimiter])


def _split(line: str, delimiter: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _numbered(text: str, skipped: int, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each row of a spreadsheet with its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start = 0
    while True:
        place = f"line {skipped + start + 1}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            reason = f"begins a row that cannot be read ({error}); is the file written to the end?"
            raise FaultError(place, reason) from None
        if cells is None:
            return
        yield place, cells
        start = reader.line_num


def _check_header(header: list[str]) -> None:
    for name in _NEEDED:
        if name not in header:
            reason = f"names no column {name!r}; it names {', '.join(header)[:200]}"
            raise FaultError("line 1", reason)
    double = [name for name in header if name and header.count(name) > 1]
    if double:
        raise FaultError("line 1", f"names the column {double[0]!r} twice")


def _check_end(text: str, header: list[str], place: str, cells: list[str]) -> None:
    """Raise a `FaultError` if a spreadsheet ends within a row: cells may be cut."""
    complete = len(cells) >= len(header) and not CHANGED.fullmatch(header[-1])
    if not complete and not text.endswith(("\n", "\r")):
        raise FaultError(place, "has no line break at its end; is the file written to the end?")


def _row_of(place: str, cells: dict[str, str]) -> Row:
    plain = {name: _without_apostrophe(cell) for name, cell in cells.items()}
    exported = "annotation_id" in plain  # by Label Studio
    edited = {
        name.removeprefix(EDITED): cell
        for name, cell in plain.items()
        if CHANGED.fullmatch(name) and cell
    }
    if exported:
        plain.setdefault(REVIEWER, plain.get("annotator", ""))
    answer = [plain.get(name, "") for name in (ID, DECISION)]
    person = [plain.get(name, "").strip() for name in (REVIEWER, COMMENT)]
    seen = {} if exported else {name: plain[name] for name in plain if not CHANGED.fullmatch(name)}
    return Row(place, answer[0], answer[1], edited, person[0], person[1], seen, texts=True)


def _without_apostrophe(cell: str) -> str:
    guarded = cell.startswith("'") and cell[1:].startswith(FORMULA)
    return cell[1:] if guarded else cell


def _tasks(content: bytes) -> Iterator[Row]:
    """Yield the rows of an export of Label Studio, of the form JSON or JSON-MIN."""
    tasks = _json(_decoded(content), "the file", "JSON; is the file written to the end?")
    if not isinstance(tasks, list):
        raise FaultError("the file", "must be a list of tasks, as Label Studio exports it")
    for number, task in enumerate(tasks, 1):
        place = f"task {number}"
        if isinstance(task, dict) and "data" in task:
            yield from _annotations(task, place)
        elif isinstance(task, dict) and ID in task:
            yield _json_min(task, place)
        else:
            raise FaultError(place, f"must be an object with 'data'; got {task!r:.80}")


def _json_min(task: dict[str, Any], place: str) -> Row:
    edited = _numbered_edits(task)
    skipped = {DECISION: None} if "annotation_id" in task else {}  # has no decision
    row = _flat({**skipped, **task, "edited": edited or task.get("edited")}, place)
    return row._replace(texts=not task.keys().isdisjoint(_OF_EXPORTS))


def _numbered_edits(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a form's fields for changes, by the number of the column."""
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in values.items()
        if CHANGED.fullmatch(name)
    }


def _annotations(task: dict[str, Any], place: str) -> Iterator[Row]:
    """Yield the rows of a task. Predictions are of models, and skipped tasks undecided."""
    data = task["data"]
    if not isinstance(data, dict) or ID not in data:
        raise FaultError(place, f"its data lacks {ID!r}")
    annotations = task.get("annotations", task.get("completions")) or []  # before version 1.0
    if not isinstance(annotations, list):
        raise FaultError(place, f"its annotations must be a list; got {annotations!r:.80}")
    for number, annotation in enumerate(annotations, 1):
        where = f"{place}, annotation {number}"
        if not isinstance(annotation, dict):
            raise FaultError(where, f"must be an object; got {annotation!r:.80}")
        if annotation.get("was_cancelled"):
            continue
        values = _values(annotation.get("result") or [], where)
        if values.get(DECISION) is None:
            raise FaultError(where, "has no choice; decide in Label Studio, or skip the task")
        edited = _numbered_edits(values)
        reviewer = _text(annotation.get("completed_by"))
        comment = _text(values.get(COMMENT))
        yield Row(where, data[ID], values[DECISION], edited, reviewer, comment, texts=True)


def _values(results: Any, where: str) -> dict[str, Any]:
    """Return the values of an annotation, by the name of the form's field."""
    values: dict[str, Any] = {}
    for result in results if isinstance(results, list) else [results]:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            raise FaultError(where, f"has a result without a value: {result!r:.80}")
        name = str(result.get("from_name"))
        several = value.get("choices", value.get("text"))
        listed = several if isinstance(several, list) else [several]
        if name in values or len(listed) != 1:
            number = len(listed) + (name in values)
            raise FaultError(where, f"has {number} values of {name!r}; leave one")
        values[name] = listed[0]
    return values
