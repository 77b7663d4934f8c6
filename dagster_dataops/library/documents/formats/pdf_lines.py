"""The lines of a PDF page with size and place, and Markdown made of them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_HEADINGS: Final = ((1.7, "# "), (1.35, "## "), (1.12, "### "))  # by size, relative to the body
_LONGEST_HEADING: Final = 200  # characters
_BULLET: Final = re.compile(r"[•▪◦‣●○■□–∙·][ \t]+")
_NUMBERED: Final = re.compile(r"\(?\d{1,3}[.)][ \t]+\S")
_MARK: Final = re.compile(r"(?=[#>])")  # at the start of a line that is no heading or quote
_GAP: Final = 1.6  # line heights between the tops of lines, from which a paragraph begins
# PDFium writes such a character for a hyphen at the end of a line, and joins the two lines.
_HYPHENS: Final = str.maketrans("", "", "\ufffe\x02\xad")


class Line(NamedTuple):
    """A line of text.

    Attributes:
        text: Its text.
        size: The size of its first character in points; 0 if unknown.
        top: The height of its first character over the bottom of the page, in points.
    """

    text: str
    size: float
    top: float


def text_lines(textpage: Any, raw: Any) -> list[Line]:
    """Return the lines of a page, in the order in which the file has them."""
    lines, place = [], 0
    for text in textpage.get_text_range().split("\r\n"):
        start = place + len(text) - len(text.lstrip())
        index = raw.FPDFText_GetCharIndexFromTextIndex(textpage, start)
        lines.append(Line(text.translate(_HYPHENS).strip(), *_form(textpage, raw, index)))
        place += len(text) + 2
    return lines


def _form(textpage: Any, raw: Any, index: int) -> tuple[float, float]:
    """Return the size and the height of a character."""
    if index < 0:
        return 0.0, 0.0
    box = raw.FS_RECTF()
    if not raw.FPDFText_GetLooseCharBox(textpage, index, box):
        return 0.0, 0.0
    return round(box.top - box.bottom, 1), box.top


def markdown_of_lines(lines: Sequence[Line]) -> str:
    """Return lines as Markdown: headings by their size, lists by their marks, paragraphs."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    body = max(sizes, key=lambda size: (sizes[size], -size), default=0.0)
    return "\n\n".join(_blocks(lines, body))


def _blocks(lines: Sequence[Line], body: float) -> Iterator[str]:
    """Yield headings, items of lists and paragraphs."""
    parts: list[str] = []
    before: Line | None = None
    for line in lines:
        mark = _mark(line, body)
        begins = mark is not None or before is None or _is_apart(before, line, body)
        if parts and (begins or not line.text):
            yield " ".join(parts)
            parts = []
        if line.text:
            parts.append(f"{mark}{_BULLET.sub('', line.text)}" if mark else _escaped(line.text))
        before = line if line.text else None
    if parts:
        yield " ".join(parts)


def _mark(line: Line, body: float) -> str | None:
    """Return what Markdown writes before a heading or item; ``""`` for an item with a number."""
    if _BULLET.match(line.text):
        return "- "
    if _NUMBERED.match(line.text):
        return ""
    if body and len(line.text) <= _LONGEST_HEADING:
        return next((mark for ratio, mark in _HEADINGS if line.size >= ratio * body), None)
    return None


def _is_apart(before: Line, line: Line, body: float) -> bool:
    """Return whether a line begins a paragraph: another size, or more space than in a paragraph."""
    if abs(before.size - line.size) > 0.1 * (body or 1):
        return True
    return abs(before.top - line.top) > _GAP * max(line.size, 1.0)


def _escaped(text: str) -> str:
    return _MARK.sub(r"\\", text, count=1) if text[0] in "#>" else text
