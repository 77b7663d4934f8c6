"""``markdown.Sections``: one record for each section."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from annotated_types import Interval

from dagster_dataops.data import data_register
from dagster_dataops.library.analysis.markdown_parsing import commonmark_parser, inline_text
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.records import Record

markdown: Any = data_register.new_group("markdown")

_Level: TypeAlias = Annotated[int, Interval(ge=1, le=6)]

_NEWLINE: Final = re.compile(r"\r\n?|\n")


class _Heading(NamedTuple):
    """A heading: the lines where it begins and ends, its level, and its text."""

    line: int
    end: int
    level: int
    text: str


class Sections(markdown):
    """Split a Markdown text at its headings, one record for each section.

    Reads ``input_key``. Writes the text of the section to ``output_key``, the texts of its heading
    and of those above it to ``headings_key``, the highest first, and its number, from 0, to
    ``index_key``, each in a copy of the record. The text before the first heading has no headings.
    Headings in code, lists and quotes do not count. A blank text has no sections and is dropped.
    Needs the extra ``markdown``.

    Args:
        input_key: The key of the text.
        output_key: The key of the text of the section; by default, ``input_key``.
        max_level: The lowest headings to split at: 1 for ``#``, 6 for ``######``.
        keep_heading: Whether the text of a section begins with its heading.
        headings_key: The key of the headings.
        index_key: The key of the number.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str | None = None,
        *,
        max_level: _Level = 6,
        keep_heading: bool = True,
        headings_key: str = "headings",
        index_key: str = "section",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        commonmark_parser()
        self._max_level, self._keeps_heading = max_level, keep_heading
        self._column, self._written = FieldKey(input_key), output_key
        self._headings_key, self._index_key = headings_key, index_key
        if output_key is None:
            self._column.checked_single("give an output_key")

    def forward(self, record: Record) -> list[Record]:
        sections = self._sections(self._column.text(record))
        return [self._section(record, number, *section) for number, section in enumerate(sections)]

    def _section(self, record: Record, number: int, path: list[str], text: str) -> Record:
        columns: dict[str, Any] = {self._headings_key: path, self._index_key: number}
        return {**self._column.replaced(text, record, self._written), **columns}

    def _sections(self, whole: str) -> Iterator[tuple[list[str], str]]:
        """Yield the headings and the text of each section."""
        lines = _NEWLINE.split(whole)
        headings = [heading for heading in _headings(whole) if heading.level <= self._max_level]
        first = headings[0].line if headings else len(lines)
        before = _joined(lines[:first])
        if before:
            yield [], before
        above: list[_Heading] = []
        ends = [*(heading.line for heading in headings[1:]), len(lines)]
        for heading, end in zip(headings, ends, strict=False):
            above = [parent for parent in above if parent.level < heading.level] + [heading]
            start = heading.line if self._keeps_heading else heading.end
            yield [parent.text for parent in above], _joined(lines[start:end])


def _joined(lines: list[str]) -> str:
    text = "\n".join(lines)
    return text.strip("\n") if text.strip() else ""


def _headings(whole: str) -> Iterator[_Heading]:
    tokens = commonmark_parser(blocks=True).parse(whole)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0:
            (parsed,) = commonmark_parser().parseInline(inline.content)
            text = inline_text(parsed.children)
            start, end = token.map
            yield _Heading(start, end, int(token.tag[1:]), text)
