import pytest

from dagster_dataops import Drop, data
from dagster_dataops.errors import DefinitionError

GOOD = "One good line here. It has two sentences."


def cleaned(*lines, **options):
    options = {"min_sentences": 0, **options}
    returned = data.filters.C4Quality(**options).forward({"text": "\n".join(lines)})
    return returned.reason if isinstance(returned, Drop) else returned["text"]


@pytest.mark.parametrize(
    "line",
    [
        "No mark at the end",
        "It ends in an ellipsis...",
        "Two words.",
        "Please enable JavaScript here.",
        "This site uses cookies to follow you.",
        "Read our Privacy Policy now.",
        "A long word " + "x" * 1001 + ".",
        "Code with { but without a mark",
    ],
)
def test_a_bad_line_goes(line):
    assert cleaned(GOOD, line, f"  {GOOD} ") == f"{GOOD}\n{GOOD}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [("This is Lorem Ipsum text.", "lorem_ipsum"), ("A bracket { is here.", "curly_bracket")],
)
def test_a_line_may_drop_the_text(line, reason):
    assert cleaned(GOOD, line) == reason


def test_citations_go_and_their_words_count():
    assert cleaned("Rome [1] grew[edit] [citation needed].") == "Rome  grew ."
    assert cleaned("Rome [1] grew.") == "Rome  grew."


def test_too_few_sentences_drop_the_text():
    assert cleaned(GOOD, GOOD, min_sentences=5) == "too_few_sentences"
    assert cleaned(GOOD, GOOD, GOOD, min_sentences=5).count("\n") == 2
    assert cleaned("no", min_sentences=-1) == cleaned("no", min_sentences=None) == ""


def test_sentences_can_be_judged_in_place_of_lines():
    text = "One good line here. Yes. And a third\none."

    assert cleaned(text, split_paragraph=False) == "One good line here. And a third\none."
    assert cleaned(text, split_paragraph=False, sentences="newline") == ""


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("filter_no_terminal_punct", "No mark at the end"),
        ("filter_javascript", "Please enable JavaScript here."),
        ("filter_policy", "This site uses cookies to follow you."),
        ("filter_lorem_ipsum", "This is Lorem Ipsum text."),
        ("filter_curly_bracket", "A bracket { is here."),
        ("remove_citations", "Rome grew [1] fast."),
    ],
)
def test_a_rule_can_be_switched_off(option, line):
    assert cleaned(line) != line
    assert cleaned(line, **{option: False}) == line


def test_numbers_can_be_switched_off():
    long = "A long word " + "x" * 1001 + "."
    assert cleaned(long, max_word_length=None) == cleaned(long, max_word_length=-1) == long
    assert cleaned("Two words.", min_words_per_line=None) == "Two words."


def test_tag_leaves_the_text_and_both_changes_it():
    record = {"text": f"{GOOD}\nno"}
    counts = {"c4_lines": 2, "c4_kept_lines": 1, "c4_sentences": 2}
    options = {"min_sentences": 1}

    tagged = data.filters.C4Quality(mode="tag", **options)([record])
    both = data.filters.C4Quality(mode="both", **options)([record])

    assert tagged == [{**record, "stats": counts, "drop_reason": None}]
    assert both == [{"text": GOOD, "stats": counts}]


def test_the_text_is_written_to_the_output_key():
    operator = data.filters.C4Quality(input_key="a.b", min_sentences=1)
    assert operator([{"a": {"b": f"{GOOD}\nno", "c": 1}}]) == [{"a": {"b": GOOD, "c": 1}}]
    operator = data.filters.C4Quality(output_key="clean", min_sentences=1)
    assert operator([{"text": f"{GOOD}\nno"}]) == [{"text": f"{GOOD}\nno", "clean": GOOD}]
    with pytest.raises(DefinitionError, match="may select several"):
        data.filters.C4Quality(input_key="a[*]")
