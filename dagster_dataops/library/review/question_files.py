"""Write questions to a file for people: jsonl, CSV, or tasks of Label Studio."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from dagster_dataops.library.review.questions import (
    CHOICES,
    COMMENT,
    DECISION,
    EDITED,
    ID,
    INSTRUCTIONS,
    REVIEWER,
    Form,
    Question,
)
from dagster_dataops.records import encode

Format: TypeAlias = Literal["jsonl", "csv", "label_studio"]
SUFFIXES: Final[Mapping[str, str]] = {"jsonl": "jsonl", "csv": "csv", "label_studio": "json"}
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # begin what a spreadsheet computes
SHOWN: Final = "shown_{}"  # names in a form of Label Studio, by the number of the column
NEW: Final = "edited_{}"


def question_file(format: str, form: Form, questions: Sequence[Question]) -> bytes:  # noqa: A002
    """Return the content of a file with questions."""
    return _WRITERS[format](form, questions)


def label_studio_form(form: Form) -> bytes:
    """Return the labelling configuration of Label Studio: the settings of a project there."""
    lines = ["<View>"]
    if form.instructions:
        lines.append(f"  <Header value={quoteattr(form.instructions)}/>")
    for number, name in enumerate(form.fields):
        shown = SHOWN.format(number)
        lines.append(f"  <Header value={quoteattr(name)}/>")
        lines.append(f'  <Text name="{shown}" value="${shown}"/>')
    target = f'toName="{SHOWN.format(0)}"'
    lines.append(f'  <Choices name="{DECISION}" {target} choice="single" required="true">')
    lines += [f"    <Choice value={quoteattr(choice)}/>" for choice in form.choices]
    lines.append("  </Choices>")
    for number, name in enumerate(form.edit):
        shown = SHOWN.format(form.fields.index(name))
        lines.append(f"  <Header value={quoteattr(f'new value of {name}')}/>")
        lines.append(
            f'  <TextArea name="{NEW.format(number)}" {target} value="${shown}" '
            'maxSubmissions="1" editable="true"/>'
        )
    lines.append(f'  <TextArea name="{COMMENT}" {target} maxSubmissions="1"/>')
    return "\n".join([*lines, "</View>", ""]).encode()


def text_of(value: Any) -> str:
    """Return a value as a person sees it: a text, or JSON; empty for ``None``."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else encode(value).decode().rstrip("\n")
    return text.encode(errors="replace").decode()  # lone surrogates


def cell_of(value: Any) -> str:
    """Return the cell of a value; a text that a spreadsheet would compute gets an apostrophe."""
    text = text_of(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA) else text


def _jsonl(form: Form, questions: Iterable[Question]) -> bytes:
    lines = bytearray()
    for question in questions:
        line: dict[str, Any] = {ID: question.id, INSTRUCTIONS: form.instructions}
        line |= {"fields": question.shown}
        line |= {CHOICES: form.choices, DECISION: None}
        line |= {"edited": {}} if form.edit else {}
        lines += encode({**line, REVIEWER: None, COMMENT: None})
    return bytes(lines)


def _csv(form: Form, questions: Iterable[Question]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    new = [f"{EDITED}{name}" for name in form.edit]
    told = [INSTRUCTIONS] if form.instructions else []
    writer.writerow([ID, *form.fields, *told, CHOICES, DECISION, *new, REVIEWER, COMMENT])
    choices = [*([form.instructions] if told else []), " | ".join(form.choices)]
    for question in questions:
        shown = [cell_of(question.shown[name]) for name in form.fields]
        writer.writerow([question.id, *shown, *map(cell_of, choices), *[""] * (len(new) + 3)])
    return file.getvalue().encode("utf-8-sig")  # Excel needs the mark


def _label_studio(form: Form, questions: Iterable[Question]) -> bytes:
    tasks = []
    for question in questions:
        shown = {
            SHOWN.format(number): text_of(question.shown[name])
            for number, name in enumerate(form.fields)
        }
        tasks.append(encode({"data": {ID: question.id, **shown}}).rstrip(b"\n"))
    return b"[\n" + b",\n".join(tasks) + b"\n]\n"


_WRITERS: Final[Mapping[str, Callable[[Form, Sequence[Question]], bytes]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "label_studio": _label_studio,
}
