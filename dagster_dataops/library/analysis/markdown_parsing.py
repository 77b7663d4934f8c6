"""Parsers of Markdown, and the plain text of its parts."""

from functools import cache
from typing import Any, Final

from dagster_dataops.library.option_values import needs_extra

_BREAKS: Final = frozenset({"softbreak", "hardbreak"})


@cache
def commonmark_parser(*, blocks: bool = False) -> Any:
    """Return the parser of CommonMark; with ``blocks``, it finds blocks alone, in far less time."""
    with needs_extra("An operator on Markdown", "markdown"):
        from markdown_it import MarkdownIt
    parser = MarkdownIt("commonmark")
    if blocks:
        parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def inline_text(tokens: list[Any]) -> str:
    """Return the text of the tokens in a paragraph or heading, without marks."""
    return "".join("\n" if token.type in _BREAKS else str(token.content) for token in tokens)
