from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError
from tests.each import each
from tests.library.adversarial import HOSTILE

_NUMBERS = (
    *("frequency", "let_frequency", "num_sentences", "num_paragraphs", "num_words"),
    *("nth_paragraph", "num_placeholders", "num_bullets", "num_highlights", "num_sections"),
    "capital_frequency",
)
MORE, LESS = {"relation": "at least"}, {"relation": "less than"}


RULES = [
    ("keywords:existence", {"keywords": ["sun", "a+b"]}, "The Sun, a+b", "The sun"),
    ("keywords:frequency", {"keyword": "a", "frequency": 2, **MORE}, "A, a", "a"),
    ("keywords:frequency", {"keyword": "a", "frequency": 2, **LESS}, "a", "a a"),
    ("keywords:forbidden_words", {"forbidden_words": ["ass", "x"]}, "class", "An Ass."),
    (
        "keywords:letter_frequency",
        {"letter": "b", "let_frequency": 2, "let_relation": "at least"},
        "Bob",
        "bat",
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, **LESS},
        "One sentence.",
        "One here. Two here.",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n\nb"),
    ("length_constraints:number_words", {"num_words": 3, **MORE}, "a b c", "a b"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        'First.\n\n"then, more',
        "Then.\n\nFirst",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", "[a"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "a\np. s. b", "a"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S b", "P.S. b"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n - b", "** a **\n* b"),
    ("detectable_format:constrained_response", {}, "My answer is no.", "No."),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*a* and **b c**",
        "*a* and ** **",
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "PART", "num_sections": 2},
        "PART 1\na\nPART 2\nb",
        "PART 1",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{'a': 1}"),
    ("detectable_format:title", {}, "<<a title>>\ntext", "<< >>"),
    ("combination:two_responses", {}, "a\n******\nb", "a\n******\na"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it"}, "say it: yes", "yes"),
    ("startend:end_checker", {"end_phrase": "the end."}, 'It is "the end."\n', "the end"),
    ("startend:quotation", {}, ' "a" ', '"a'),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "THE END here",
        "The END",
    ),
    ("change_case:english_capital", {}, "ALL OF IT.", "Not all"),
    ("change_case:english_lowercase", {}, "all of it.", "Not all"),
    ("punctuation:no_comma", {}, "a b", "a, b"),
]


def follows(text: str, name: str, arguments: Any) -> bool:
    record = {"response": text, "instruction_id_list": [name], "kwargs": [arguments]}
    return bool(data.verify.IFEval().forward(record)["valid"])


@each("case", RULES)
def test_rules(case: tuple[str, Any, str, str]) -> None:
    name, arguments, good, bad = case
    assert follows(good, name, arguments)
    assert not follows(bad, name, arguments)
    assert not follows(" ", name, arguments)
    if arguments:
        with pytest.raises(UnfitRecordError, match=name):
            follows(good, name, {})


def test_every_rule_is_checked() -> None:
    with pytest.raises(UnfitRecordError, match="instruction 'language:x' is unknown") as refused:
        follows("a", "language:x", {})
    known = str(refused.value).partition("known are ")[2].split(", ")
    assert set(known) == {name for name, *_ in RULES}


def test_a_record_follows_all_its_instructions() -> None:
    record = {
        "response": "all small, with a comma",
        "instruction_id_list": ["change_case:english_lowercase", "punctuation:no_comma"],
        "kwargs": [{}, None],
    }
    found = data.verify.IFEval()([record])[0]
    assert found["followed"] == [True, False]
    assert found["valid"] is False
    assert data.verify.IFEval(mode="drop").forward(dict(record)).reason == "not_followed"
    for change in ({"kwargs": None}, {"kwargs": []}, {"instruction_id_list": ["language:x", "y"]}):
        with pytest.raises(UnfitRecordError):
            data.verify.IFEval().forward({**record, **change})


def test_hostile_texts_are_judged() -> None:
    arguments = {
        "keywords": ["a"],
        "keyword": "a",
        "letter": "a",
        "forbidden_words": ["bad"],
        "relation": "at least",
        "let_relation": "at least",
        "capital_relation": "at least",
        "postscript_marker": "P.S.",
        "first_word": "a",
        "section_spliter": "PART",
        "prompt_to_repeat": "a",
        "end_phrase": "a",
        **dict.fromkeys(_NUMBERS, 1),
    }
    for text in (
        *HOSTILE.values(),
        "[" * 100_000,
        "*a" * 50_000,
        "**" * 50_000,
        "<<" * 50_000,
        "*<<" + "a" * 100_000,
    ):
        for name, *_ in RULES:
            follows(text, name, arguments)
