import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.sentence_splitting import sentences_function


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("No mark", ["No mark"]),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "Hi." Then (he left.) End', ['He said "Hi."', "Then (he left.)", "End"]),
        ("Mr. Smith has 5. apples", ["Mr. Smith has 5. apples"]),
        ("Plan B. works, e.g. here.", ["Plan B. works, e.g. here."]),
        (
            "A cat sat. He said no. It is art. End",
            ["A cat sat.", "He said no.", "It is art.", "End"],
        ),
        ("See no. 5, fig. 3 and Art. Two.", ["See no. 5, fig. 3 and Art. Two."]),
        ("No. On Sat. we met.", ["No.", "On Sat. we met."]),
        ("Wait... what?! Yes…", ["Wait...", "what?!", "Yes…"]),
        ("see a.b.c and 1.5.", ["see a.b.c and 1.5."]),
        ("今日は。明日は！", ["今日は。", "明日は！"]),
        ("यह है। वह है।", ["यह है।", "वह है।"]),
        ("کیا ہے؟ یہ ہے۔", ["کیا ہے؟", "یہ ہے۔"]),
        ("One .\nTwo .", ["One .", "Two ."]),
        ("." * 50, ["." * 50]),
    ],
)
def test_sentences_by_rule(text, expected):
    assert sentences_function()(text) == expected


def test_sentences_by_line():
    assert sentences_function("newline")("a. b\n\n c ") == ["a. b", "c"]


def test_sentences_of_spacy():
    pytest.importorskip("spacy")
    split = sentences_function("spacy")

    assert split(" Mr. Smith went. Yes! ") == ["Mr. Smith went.", "Yes!"]
    assert split("") == split(" \n") == []


def test_an_unknown_name_is_refused():
    with pytest.raises(DefinitionError, match="use rule, newline"):
        sentences_function("punkt")
