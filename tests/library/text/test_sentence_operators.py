import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def change(text, **options):
    return data.text.RemoveRepeatedSentences(**options).forward({"text": text})["text"]


def split(text, **options):
    return data.text.SplitSentences(**options).forward({"text": text})["sentences"]


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
def test_sentences_end_by_rule(text, expected):
    assert split(text) == expected


def test_sentences_are_lines_or_those_of_spacy():
    assert split("a. b\n\n c ", sentences="newline") == ["a. b", "c"]
    with pytest.raises(DefinitionError, match="use rule, newline"):
        split("", sentences="punkt")
    pytest.importorskip("spacy")
    assert split(" Mr. Smith went. Yes! ", sentences="spacy") == ["Mr. Smith went.", "Yes!"]
    assert split("", sentences="spacy") == split(" \n", sentences="spacy") == []


def test_a_text_is_split_into_sentences():
    record = {"text": "It is. Is it? Dr. Who!"}

    assert data.text.SplitSentences()([record]) == [
        {**record, "sentences": ["It is.", "Is it?", "Dr. Who!"]}
    ]
    by_word = data.text.SplitSentences(sentences=str.split, output_key="words")
    assert by_word.forward({"text": "a b"})["words"] == ["a", "b"]


def test_repeated_sentences_go():
    assert change("One two. Three.One two. Three.") == "One two. Three."
    assert change("A b c.\nA b c.\nD.") == "A b c.\n\nD."
    assert change("Yes. yes.") == "Yes. yes."
    assert change("Yes. yes.", ignore_case=True) == "Yes."
    assert change("Yes, a. Yes a.") == "Yes, a."
    assert change("Yes, a. Yes a.", ignore_special_character=False) == "Yes, a. Yes a."
    assert change("Ab. Ab.", min_sentence_length=3) == "Ab. Ab."


def test_other_scripts_are_compared_on_request():
    assert change("Да, да. Да, да.") == "Да, да. Да, да."
    assert change("Да, да. Да, да.", script="any") == "Да, да."
    with pytest.raises(DefinitionError, match="latin_han"):
        data.text.RemoveRepeatedSentences(script="greek")
