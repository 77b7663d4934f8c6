from dagster_dataops.library.analysis.markdown_parsing import commonmark_parser, inline_text


def test_the_text_of_a_paragraph_has_no_marks():
    (inline,) = commonmark_parser().parseInline("a *b*\n`c` [d](e)")

    assert inline_text(inline.children) == "a b\nc d"


def test_blocks_are_found_alone():
    tokens = commonmark_parser(blocks=True).parse("# *a*")

    assert [token.children for token in tokens if token.type == "inline"] == [[]]
