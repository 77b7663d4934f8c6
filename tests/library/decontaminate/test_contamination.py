from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

QUERY = "How many apples does Ann have if she buys 12 of them?"
LABEL = "She has twelve apples."
BENCHMARK = [{"query": QUERY, "label": LABEL, "task": "maths"}]


def reason(operator: Any, text: Any) -> Any:
    record = {"text": text}
    operator.forward(record)
    return record


@pytest.mark.parametrize(
    ("text", "query", "across", "found"),
    [
        ("so HOW many apples - does Ann have, they said", True, False, "how many apples does ann"),
        ("so HOW many apples - does Ann have, they said", False, True, None),
        ("of them: she has twelve!", False, True, "of them she has twelve"),
        ("of them: she has twelve!", True, False, None),
        ("she buys 99 of them", True, True, "she buys 0 of them"),
        ("how many apples does", True, True, None),
        ("", True, True, None),
        (None, True, True, None),
    ],
)
def test_the_first_common_ngram_is_found(
    text: Any, query: bool, across: bool, found: str | None
) -> None:
    operator = data.decontaminate.NGrams(
        BENCHMARK,
        ngram_size=5,
        find_query_ngrams=query,
        find_overlap_ngrams=across,
        mode="tag",
    )
    assert reason(operator, text) == {
        "text": text,
        "contaminated_ngram": found,
        "contaminated_task": found and "maths",
        "drop_reason": found and "contaminated",
    }


@pytest.mark.slow
def test_contaminated_records_are_dropped(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "benchmark.jsonl"
    path.write_bytes(orjson.dumps({"question": QUERY, "answer": LABEL}) + b"\n")
    given = [{"text": "clean"}, {"text": f"copied: {QUERY}"}]
    for benchmark in (path, str(path), {"maths": path}):
        operator = data.decontaminate.NGrams(benchmark, query_key="question", label_key="answer")
        assert operator(given) == given[:1]
    both = data.decontaminate.NGrams({"maths": BENCHMARK}, mode="both")(given)
    assert both == [{"text": "clean", "contaminated_ngram": None, "contaminated_task": None}]


@pytest.mark.parametrize(
    ("text", "overlap"),
    [
        ("", 0.0),
        ("nothing of it", 0.0),
        (f"{QUERY} {LABEL}", 1.0),
        ("she has twelve apples x x x x", 0.5),
        ("how many apples does ann have x x", 0.75),
        ("how many apples x how many apples", 6 / 7),
    ],
)
def test_the_overlap_is_the_share_of_words_in_common_ngrams(text: str, overlap: float) -> None:
    operator = data.decontaminate.Overlap(BENCHMARK, ngram_size=3, threshold=0.75, mode="tag")
    found = reason(operator, text)
    assert found["stats"] == {"benchmark_overlap": overlap}
    assert found["drop_reason"] == ("contaminated" if overlap >= 0.75 else None)


def test_records_with_much_overlap_are_dropped(root: Path) -> None:
    given = [{"text": QUERY}, {"text": "clean", "stats": {"other": 1}}]
    assert data.decontaminate.Overlap(BENCHMARK)(given) == given[1:]
    assert data.decontaminate.Overlap(BENCHMARK, mode="both")(given) == [
        {"text": "clean", "stats": {"other": 1, "benchmark_overlap": 0.0}}
    ]


@pytest.mark.parametrize("name", ["NGrams", "Overlap"])
def test_numbers_alone_are_no_copy_of_a_benchmark(root: Path, name: str) -> None:
    benchmark = [{"query": "Add 1, 2, 3 and 4", "label": "1+2+3+4 = 10, so x is 10"}]
    make = getattr(data.decontaminate, name)
    options = {"ngram_size": 4} if name == "NGrams" else {"ngram_size": 4, "threshold": 0.5}
    table, copy = {"text": "[[0, 1, 0],\n [0, 1, 1]]"}, {"text": "10, so X = is 7"}

    assert make(benchmark, **options)([table, copy]) == [table]
    assert make(benchmark, **options, ignore_numbers=False)([table, copy]) == []


@pytest.mark.parametrize(
    "option",
    [{"mode": "x"}, {"ngram_size": 0}, {"benchmark": [1]}],
)
def test_wrong_options_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(option))):
        data.decontaminate.NGrams(**{"benchmark": [], **option})
    with pytest.raises(DefinitionError, match="threshold"):
        data.decontaminate.Overlap([], threshold=0)


@pytest.mark.parametrize("name", ["NGrams", "Overlap"])
def test_a_benchmark_without_its_columns_is_refused(name: str) -> None:
    make = getattr(data.decontaminate, name)
    with pytest.raises(DefinitionError, match="'q' or 'label'; the last one has question, answer"):
        make([{"question": "a", "answer": "b"}], query_key="q")
    with pytest.raises(DefinitionError, match="no record of benchmark 'b' has"):
        make({"a": [{"query": "a"}, {}], "b": [{}]})


def test_a_value_that_is_no_text_fails_its_record(root: Path) -> None:
    for operator in (data.decontaminate.NGrams([]), data.decontaminate.Overlap([])):
        assert operator([{"text": 1}, {"text": "a"}]) == [{"text": "a"}]
