import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def change(operator, text):
    return operator.forward({"text": text})["text"]


def test_lines_of_symbols_go():
    text = "a\n---\n===  \n\n b \n***\n"

    assert change(data.text.RemoveSymbolLines(), text) == "a\n\n b "
    assert change(data.text.RemoveSymbolLines(replace="~"), text) == "a\n~\n\n b \n~"
    assert change(data.text.RemoveSymbolLines(), " \n\t\na") == " \n\t\na"


def test_a_block_of_notices_at_an_end_goes():
    operator = data.text.RemoveBoilerplate()

    assert change(operator, "Terms of use\n\nCookie policy\n\nText") == "Text"
    assert change(operator, "Text\n\nThis site uses cookies.") == "Text"
    assert change(operator, "A\n\nTerms of use\n\nB") == "A\n\nTerms of use\n\nB"
    assert (
        change(operator, "Terms of use\n\nA\n\nTerms of use") == "Terms of use\n\nA\n\nTerms of use"
    )
    assert change(operator, "Terms of use") == "Terms of use"
    assert change(operator, "A Lorem Ipsum b") == ""
    everywhere = data.text.RemoveBoilerplate(top_or_bottom_only=False)
    assert change(everywhere, "A\n\nTerms of use\n\nB") == ""
    assert change(everywhere, "A") == "A"


def test_a_copyright_notice_goes():
    operator = data.text.RemoveCopyrightHeader()

    assert change(operator, "/* Copyright me */\nx /* y */") == "\nx /* y */"
    assert change(operator, "/* about */ x") == "/* about */ x"
    assert change(operator, "# a\n\n// b\ncode\n# c") == "code\n# c"
    assert change(operator, "/* never ends") == "/* never ends"


def test_rows_of_a_table_go():
    operator = data.text.RemoveTableText()

    assert change(operator, "Title\na b c\nd e f\n\ng h i\nText here now, and more\n") == (
        "Title\nText here now, and more\n"
    )
    assert change(operator, "Title\na|b\nc|d\nend") == "Title\nend"
    assert change(operator, "a b\nc d\ne f") == "a b\nc d\ne f"
    assert change(data.text.RemoveTableText(min_col=4), "T\na b\nc d\n\n") == "T\na b\nc d\n\n"
    with pytest.raises(DefinitionError, match="max_col"):
        data.text.RemoveTableText(max_col=21)
