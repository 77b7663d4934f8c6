import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

SOURCE = r"""\documentclass{a}
\newcommand{\name}{Ada}
\def\age{36}
\section{One}
% a comment
\name{} is \age, 100\% sure. \names % another
\bibliographystyle{x}
\bibliography{y}
rest"""


def change(text, **options):
    return data.text.Latex(**options).forward({"text": text})["text"]


def test_all_parts_go():
    assert change(SOURCE) == (
        "\\section{One}\nAda{} is 36, 100\\% sure. \\names \n\\bibliographystyle{x}\n"
    )


def test_parts_are_chosen():
    assert change("a % b", strip=["header"]) == "a % b"
    assert change("a % b", strip=["comments"]) == "a "
    assert change(r"a \\% b", strip=["comments"]) == r"a \\"
    assert change("x\n\\section*[s]{A}", strip=["header"]) == "\\section*[s]{A}"
    assert change("no heading") == "no heading"
    with pytest.raises(DefinitionError, match="comments"):
        data.text.Latex(strip=["figures"])


def test_a_long_macro_is_not_expanded():
    text = "\\def\\a{" + "b" * 1000 + "}\n" + "\\a" * 1000

    assert change(text) == text
