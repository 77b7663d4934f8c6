"""Markdown of metadata: tables, cells, fences and prose."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dagster_dataops.assets.metadata.markdown import (
    INLINE_CHARACTERS,
    cell,
    fenced,
    plain,
    prose,
    table,
)
from dagster_dataops.assets.planning.descriptions import described
from tests.examples import at_most

TEXTS = st.one_of(
    st.text(),
    st.text(alphabet="|\\`*_~[]()<>&!#-+=:\n\r\t \u2028\x85\x0b\0\ud800a1."),
    st.sampled_from(["| --- | --- |", "```", "<!--", "\\|", "|", "  ", "http://example.org"]),
)
VALUES = st.one_of(TEXTS, st.none(), st.integers(), st.lists(TEXTS, max_size=2))
SHAPES = st.integers(1, 5).flatmap(
    lambda width: st.tuples(
        st.lists(TEXTS, min_size=width, max_size=width),
        st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=6),
    )
)


def rendered(markdown: str) -> list[list[str]]:
    """Return the cells of the only table, as a Markdown reader shows them."""
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(markdown)
    assert [token.type for token in tokens].count("table_open") == 1
    rows: list[list[str]] = []
    for before, token in itertools.pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline" and before.type in {"th_open", "td_open"}:
            assert {child.type for child in token.children or []} <= {"text", "text_special"}
            rows[-1].append("".join(child.content for child in token.children or []))
    return rows


def shown(value: Any) -> str:
    text = plain(value)
    return (text if len(text) <= 120 else f"{text[:120]}...").strip()


@given(SHAPES)
def test_no_cell_breaks_its_table(shape: tuple[list[str], list[list[Any]]]) -> None:
    header, rows = shape
    wide = [*header, "x" * 200]  # nothing is cut for its sake: it does not fit anyhow
    cells = [[*row, "x"] for row in rows]
    expected = [[shown(value) for value in row] for row in [wide, *cells]]
    assert rendered(table(wide, cells)) == expected


@given(SHAPES, TEXTS)
def test_every_row_has_every_cell_with_any_shortening(
    shape: tuple[list[str], list[list[Any]]], note: str
) -> None:
    header, rows = shape
    found = rendered(table(header, rows, note))
    assert [len(row) for row in found] == [len(header)] * (len(rows) + 1)


def test_a_narrow_table_is_short_enough_to_be_shown_in_its_place() -> None:
    made = table(["column", "what it is"], [["text", "some words " * 30]] * 10)
    assert len(made) < INLINE_CHARACTERS
    assert "..." in made


@pytest.mark.parametrize(
    "row",
    [["x" * 50, "y"], ["a b " * 20] * 4],
    ids=["a word too long", "rows too long"],
)
def test_a_table_that_would_be_cut_off_is_long_enough_for_a_window(row: list[str]) -> None:
    made = table([f"c{number}" for number in range(len(row))], [row])
    assert len(made) >= INLINE_CHARACTERS
    assert rendered(made)[1] == [text.strip() for text in row]


def test_a_note_is_below_the_table() -> None:
    assert table(["a"], [["b"]], "and 4 *more*").endswith("\n\n_and 4 \\*more\\*_")


def test_a_table_of_long_texts_is_always_shown_in_a_window():
    assert len(table(["a"], [["b"]])) < INLINE_CHARACTERS <= len(table(["a"], [["b"]], window=True))


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
PROSE = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)


def _tokens(markdown: str) -> list[Any]:
    return [one for token in _READER.parse(markdown) for one in (token, *(token.children or ()))]


def _foreign(markdown: str) -> list[str]:
    return [
        one.type for one in _tokens(markdown) if one.type in {"html_inline", "html_block", "image"}
    ]


@settings(max_examples=at_most(300))
@given(PROSE)
@example("`\n- <b>`")
@example("`\n<!--`")
@example("\\```a``!<b> ```")
@example("a | b\n--- | ---\n`c | <b>`")
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
