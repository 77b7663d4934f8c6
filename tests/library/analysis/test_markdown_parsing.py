import sys

import pytest

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.library.analysis.markdown_parsing import commonmark_parser, inline_text


def test_the_text_of_a_paragraph_has_no_marks():
    (inline,) = commonmark_parser().parseInline("a *b*\n`c` [d](e)")

    assert inline_text(inline.children) == "a b\nc d"


def test_blocks_are_found_alone():
    tokens = commonmark_parser(blocks=True).parse("# *a*")

    assert [token.children for token in tokens if token.type == "inline"] == [[]]


def test_the_extra_is_named_when_the_parser_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    commonmark_parser.cache_clear()

    with pytest.raises(MissingExtraError, match=r"\[markdown\]"):
        commonmark_parser()
