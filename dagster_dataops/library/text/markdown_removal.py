"""``text.RemoveMarkdown``: write a Markdown text without its marks."""

import re
from typing import Any, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.markdown_parsing import commonmark_parser, inline_text
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator

# NeMo Curator's marks, each between two of the same on a line.
_PAIRS: Final = tuple(map(re.compile, (r"\*\*(.*?)\*\*", r"\*(.*?)\*", r"_(.*?)_")))


class RemoveMarkdown(TextOperator, text):
    """Remove the marks of Markdown, and keep its text, the text of links and code.

    By CommonMark: marks of headings, emphasis, quotes, lists, links, images, code and rules go.
    Blocks are separated by a blank line, and the items of a tight list by a newline. HTML stays.
    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    Needs the extra ``markdown``, except with ``compat``.

    Args:
        compat: As ``MarkdownRemover`` of NeMo Curator: pairs of ``**``, ``*`` and ``_`` on a line
            go, also those inside words, and a link becomes its address.
    """

    def __init__(self, *args: Any, compat: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not compat:
            commonmark_parser()
        self._change = _without_pairs if compat else _plain_text

    @override
    def changed(self, value: str) -> str:
        return self._change(value)


def _without_pairs(value: str) -> str:
    if "*" in value or "_" in value:
        for pair in _PAIRS:
            value = pair.sub(r"\1", value)
    if "](" not in value:
        return value
    return "\n".join(map(_with_addresses, value.split("\n")))


def _with_addresses(line: str) -> str:
    """Return a line with each ``[text](address)`` replaced by the address."""
    pieces, place = [], 0
    last = line.rfind(")")
    while (start := line.find("[", place)) >= 0:
        middle = line.find("](", start + 1)
        if middle < 0 or last < middle + 2:
            break
        end = line.find(")", middle + 2)
        pieces += [line[place:start], line[middle + 2 : end]]
        place = end + 1
    return "".join([*pieces, line[place:]])


def _plain_text(value: str) -> str:
    pieces: list[str] = []
    for token in commonmark_parser().parse(value):
        if token.type == "inline":
            pieces.append(inline_text(token.children))
            pieces.append("\n\n")
        elif token.type in {"fence", "code_block", "html_block"}:
            pieces += [token.content.rstrip("\n"), "\n\n"]
        elif token.type == "paragraph_close" and token.hidden:
            pieces[-1] = "\n"  # of a tight list
        elif token.type in {"bullet_list_close", "ordered_list_close"} and pieces:
            pieces[-1] = "\n\n"
    return "".join(pieces).strip("\n")
