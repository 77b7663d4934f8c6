"""Tests of Markdown that others wrote, and of texts that stand alone: shown as text."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dagster_dataops.assets.metadata.markdown import cell, fenced, prose
from dagster_dataops.assets.planning.descriptions import described
from tests.examples import at_most

_READER = MarkdownIt("gfm-like", {"linkify": False, "html": True})
_PIECES = [
    "<b>",
    "</b>",
    "<!--",
    "![a](b)",
    "[a](javascript:x)",
    "[a]",
    ": data:x",
    "`",
    "``",
    "```",
]
_PIECES += [
    "~~~",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "- ",
    "> ",
    "\\",
    "!",
    "&amp;",
    "&#60;",
    "a",
    "<a\nb>",
    "|",
]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)


def _tokens(markdown: str) -> list[Any]:
    return [one for token in _READER.parse(markdown) for one in (token, *(token.children or ()))]


def _foreign(markdown: str) -> list[str]:
    return [
        one.type for one in _tokens(markdown) if one.type in {"html_inline", "html_block", "image"}
    ]


@settings(max_examples=at_most(300))
@given(TEXTS)
def test_prose_has_no_html_and_no_images(text: str) -> None:
    assert _foreign(prose(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Strip `<b>` tags.",
        "```\n<b>\n```",
        "[docs](https://example.org)",
        "a | b\n--- | ---\n1 | 2",
    ],
)
def test_code_links_to_pages_and_tables_of_prose_stay(text: str) -> None:
    assert prose(text) == text


def test_a_docstring_shows_tags_entities_images_and_other_links_as_text() -> None:
    said = "Strip <b>tags</b>, decode &lt;.\n\n![x](https://e/i.png) [z](javascript:alert(1))"
    made = described(said) or ""
    assert _foreign(made) == []
    shown = "".join(one.content for one in _tokens(made) if one.type.startswith("text"))
    assert "<b>tags</b>" in shown
    assert "&lt;" in shown
    assert "javascript:alert(1)" in shown


@given(st.text(alphabet="-+=1.)#>|`~*_<&[]!: a", max_size=12))
def test_a_cell_alone_is_one_paragraph_of_text(text: str) -> None:
    kinds = {one.type for one in _tokens(cell(text))}
    assert kinds <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}


@given(st.text(alphabet="`~<>\n a", max_size=30))
def test_a_fenced_text_is_one_block_of_code(text: str) -> None:
    (block,) = _READER.parse(fenced(text))
    assert (block.type, block.content) == ("fence", f"{text}\n")
