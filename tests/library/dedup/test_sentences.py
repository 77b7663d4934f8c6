from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.execution.helpers import MODES, node, run, write_input

SPAN = "The sun is up. The birds sing. The day is long."
WORDS = {"min_words": 0, "min_sentences": 0}


def texts(operator: Any, given: list[Any]) -> list[Any]:
    return [record["text"] for record in operator([{"text": text} for text in given])]


def test_a_span_that_occurred_before_is_removed_with_its_space(root: Path) -> None:
    given = [SPAN, f"One.  {SPAN}\nTwo.", f"{SPAN.upper()} Three."]
    assert texts(data.dedup.Sentences(**WORDS), given) == [SPAN, "One.\nTwo.", "Three."]


def test_line_ends_after_the_last_sentence_stay_and_spaces_go(root: Path) -> None:
    given = [SPAN, f"{SPAN} One. \n\n", f"{SPAN} Two. ", f"{SPAN}\n"]
    assert texts(data.dedup.Sentences(**WORDS), given) == [SPAN, "One. \n\n", "Two."]


def test_several_spaces_after_the_last_sentence_stay_as_in_datatrove(root: Path) -> None:
    given = [SPAN, f"{SPAN} Two.  "]
    assert texts(data.dedup.Sentences(**WORDS), given) == [SPAN, "Two.  "]


def test_a_repeat_in_one_text_is_removed_too_and_overlapping_spans_are_joined(root: Path) -> None:
    given = [f"{SPAN} Four. {SPAN} Four. Five."]
    assert texts(data.dedup.Sentences(**WORDS), given) == [f"{SPAN} Four. Five."]


@pytest.mark.slow
def test_changed_texts_below_the_minima_are_dropped_and_others_stay(root: Path) -> None:
    rest = "It is warm. " * 2
    given = ["Short.", SPAN, f"{SPAN} {rest}", SPAN]
    assert texts(data.dedup.Sentences(), given) == ["Short.", SPAN]
    assert texts(data.dedup.Sentences(min_words=0), given) == ["Short.", SPAN]
    more = texts(data.dedup.Sentences(min_words=6, min_sentences=2), given)
    assert more == ["Short.", SPAN, rest.strip()]
    empty = texts(data.dedup.Sentences(**WORDS), [SPAN, SPAN])
    assert empty == [SPAN]


def test_lines_are_compared_instead_of_sentences(root: Path) -> None:
    given = ["a 1\n\nb", "\nB!\n\nA 22\nc"]
    operator = data.dedup.Sentences(split_sentences=False, span_sentences=1, **WORDS)
    assert texts(operator, given) == ["a 1\n\nb", "c"]


def test_short_repeats_may_stay(root: Path) -> None:
    given = ["One two. Three.", "One two. Three. Four."]
    kept = data.dedup.Sentences(span_sentences=2, min_span_words=4, **WORDS)
    assert texts(kept, given) == given
    removed = data.dedup.Sentences(span_sentences=2, min_span_words=3, **WORDS)
    assert texts(removed, given) == ["One two. Three.", "Four."]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "async"])
@pytest.mark.parametrize("max_bytes", [1000, 1 << 20])
def test_modes_agree_in_memory_and_on_disk(tmp_path: Path, mode: str, max_bytes: int) -> None:
    records = [
        {"text": "\n".join(f"line {at % 7} {n % 40 if at % 2 else n}x" for at in range(n % 5))}
        for n in range(300)
    ]
    seen: set[str] = set()
    expected = []
    for record in records:
        lines = record["text"].split("\n")
        key = [line.replace(" ", "0") for line in lines]
        kept = []
        for line in lines:
            words = " ".join("".join("0" if c.isdigit() else c for c in w) for w in line.split())
            simple = words.replace("00", "0").replace("00", "0")
            if simple not in seen or not simple:
                kept.append(line)
            seen.add(simple)
        if kept == lines or any(kept):
            expected.append({"text": "\n".join(kept)})
        del key
    operator = data.dedup.Lines(_concurrency_mode=mode, _max_workers=2)
    operator._max_bytes = max_bytes
    dataset = write_input(tmp_path / "input.jsonl", records)
    assert run(operator, dataset, node(tmp_path)).dataset.read() == expected


def test_blank_and_short_lines_stay_and_texts_without_others_are_dropped(root: Path) -> None:
    given = ["long line\n\nab\n", "Long LINE!\n\nab\nab", "long line\n \n", "", None]
    assert texts(data.dedup.Lines(min_chars=3), given) == [given[0], "\nab\nab", "", None]


def test_paragraphs_may_be_compared(root: Path) -> None:
    operator = data.dedup.Lines(separator="\n\n")
    assert texts(operator, ["a\nb\n\nc", "c\n\na\n\nb"]) == ["a\nb\n\nc", "a\n\nb"]


def test_spans_of_marks_alone_are_no_repeats(root: Path) -> None:
    given = ["?! ?! ?! ?!", "?! ?! ?! ?!"]
    assert texts(data.dedup.Sentences(**WORDS), given) == given


@pytest.mark.parametrize("text", ["", None, "\n" * 5, "。" * 50, "\u202eא. ב. ג. ד."])
def test_any_text_is_compared(root: Path, text: Any) -> None:
    for operator in (data.dedup.Sentences(**WORDS), data.dedup.Lines()):
        assert texts(operator, [text])[:1] in ([text], [])


@pytest.mark.parametrize("value", [1, ["a"], {"a": 1}])
def test_a_value_that_is_no_text_fails_its_record(root: Path, value: Any) -> None:
    for operator in (data.dedup.Sentences(), data.dedup.Lines()):
        assert texts(operator, [value, "a"]) == ["a"]


def test_impossible_options_are_refused() -> None:
    with pytest.raises(DefinitionError, match="'span_sentences' must be at least 1"):
        data.dedup.Sentences(span_sentences=0)
    with pytest.raises(DefinitionError, match="several elements"):
        data.dedup.Lines("texts[*].body")
    with pytest.raises(DefinitionError, match="separator is empty"):
        data.dedup.Lines(separator="")
