"""What all operators of the group have in common."""

import pickle

import pytest

from dagster_dataops import data

OPTIONS = {
    "Replace": {"pattern": "a+", "replacement": "b"},
    "RemoveLongWords": {"max_word_length": 9},
}
FILTERS = {"LengthFilter", "LetterRatioFilter"}
NAMES = dir(data.text)
HOSTILE = {
    "marks": "\u0301\u0323" * 50_000,
    "entities": "&" + "amp;" * 25_000,
    "carriage returns": "\r\n" * 50_000,
    "stars": "**a" * 33_000,
    "squares": "[a](b" * 20_000,
    "schemes": "a-" * 50_000 + ":/",
    "comments": "/*" * 50_000,
    "sections": "\\section[" * 11_000,
    "macros": "\\newcommand{\\a}{b}\n" * 5_000,
    "rows": "a|b c\n" * 16_000,
}


def made(name):
    return getattr(data.text, name)(**OPTIONS.get(name, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.cpu_timeout(120)
def test_hostile_texts_take_linear_time(name):
    operator = made(name)
    for text in HOSTILE.values():
        operator.forward({"text": text})


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_can_be_sent_to_another_process(name):
    operator = made(name)
    state = {key: value for key, value in vars(operator).items() if key != "__dataops__"}

    assert pickle.loads(pickle.dumps(state)).keys() == state.keys()


@pytest.mark.parametrize("name", sorted(set(NAMES) - FILTERS - {"Chunk"}))
def test_a_text_can_be_written_elsewhere(name):
    record = made(name).__class__(**OPTIONS.get(name, {}), input_key="body", output_key="clean")

    assert record.forward({"body": "a b"})["body"] == "a b"
    assert "clean" in record.forward({"body": "a b"})


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, ["a", "abc"]),
        ({"max_chars": 0}, []),
        ({"min_chars": None, "max_chars": 0}, [" "]),
        ({"min_chars": None}, [" ", "a", "abc"]),
        ({"min_chars": None, "max_chars": 1}, [" ", "a"]),
    ],
)
def test_a_length_of_zero_is_a_limit_and_none_is_not(limits, kept):
    records = [{"text": one} for one in (" ", "a", "abc")]

    assert data.text.LengthFilter(**limits)(records) == [{"text": one} for one in kept]


def test_drops_by_length_and_by_letters_have_reasons():
    length = data.text.LengthFilter(min_chars=2, max_chars=3)
    letters = data.text.LetterRatioFilter()

    assert [repr(length.forward({"text": one})) for one in ("a", "a b c d", "ab")] == [
        "Drop('low_num_chars')",
        "Drop('high_num_chars')",
        "None",
    ]
    assert repr(letters.forward({"text": " "})) == "Drop('empty')"
    assert repr(letters.forward({"text": "1 2"})) == "Drop('low_letter_ratio')"
