import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def change(text, **options):
    return data.text.RemoveRepeatedSentences(**options).forward({"text": text})["text"]


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
