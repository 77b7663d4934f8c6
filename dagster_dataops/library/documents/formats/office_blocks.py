"""The blocks of pages of Office files, and their text and Markdown."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dagster_dataops.library.documents.formats.document import Table

_DEEPEST: Final = 6  # level of a heading in Markdown
_BREAKS: Final = re.compile(r"\s*\n\s*")
_MARK: Final = re.compile(r"^(?=[#>])|^(?=[-+*] )")


class Block(NamedTuple):
    """A paragraph, a heading, an item of a list or a table.

    Attributes:
        text: Its text.
        marked: Its text with the marks of Markdown for links, bold and italic.
        heading: The level of a heading, from 1; 0 for no heading.
        item: ``-`` or ``1.`` for an item of a list; empty for no item.
        level: The level of an item, from 0.
        rows: The cells of a table; ``None`` for no table.
    """

    text: str = ""
    marked: str = ""
    heading: int = 0
    item: str = ""
    level: int = 0
    rows: Table | None = None


def text_of(blocks: Iterable[Block]) -> str:
    """Return the text of blocks: each on a line, cells of tables divided by tabs."""
    return "\n".join(
        block.text if block.rows is None else "\n".join(map("\t".join, block.rows))
        for block in blocks
        if block.text.strip() or block.rows
    )


def markdown_of(blocks: Iterable[Block]) -> str:
    """Return blocks as Markdown."""
    parts: list[str] = []
    in_list = False
    for block in blocks:
        if block.rows is None and not block.text.strip():
            continue
        goes_on = bool(block.item) and in_list
        parts.append(("\n" if goes_on else "\n\n") if parts else "")
        parts.append(_markdown(block))
        in_list = bool(block.item)
    return "".join(parts)


def _markdown(block: Block) -> str:
    if block.rows is not None:
        return table_markdown(block.rows)
    text = (block.marked or block.text).strip()
    if block.heading:
        return f"{'#' * min(block.heading, _DEEPEST)} {_BREAKS.sub(' ', text)}"
    if block.item:
        return f"{'   ' * block.level}{block.item} {_BREAKS.sub(' ', text)}"
    return _BREAKS.sub("  \n", _MARK.sub(r"\\", text, count=1))


def table_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown; its first row is the head."""
    width = max(map(len, rows), default=0)
    lines = [
        "| " + " | ".join([*map(_cell, row), *[""] * (width - len(row))]) + " |" for row in rows
    ]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
