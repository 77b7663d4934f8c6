import random
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.algorithms.lsh_bands import unpack_buckets
from dagster_dataops.library.near_duplicates import ngrams
from tests.execution.helpers import MODES, lines, node, run, write_input


def text_of(seed: int, words: int = 60) -> list[str]:
    generator = random.Random(seed)
    return [f"w{generator.randrange(10_000)}" for _ in range(words)]


def corpus(count: int) -> list[dict[str, Any]]:
    """Return originals, each followed by texts in which more and more words differ."""
    records = []
    for number in range(count):
        words = text_of(number % (count // 4))
        generator = random.Random(number)
        for _ in range(generator.randrange(5) if number >= count // 4 else 0):
            words[generator.randrange(len(words))] = f"x{number}"
        records.append({"n": number, "text": " ".join(words)})
    return records


def brute_force(operator: Any, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep records that share no bucket with an earlier kept record."""
    kept: list[tuple[set[int], dict[str, Any]]] = []
    for record in records:
        buckets = set(unpack_buckets(operator.sketch(record)))
        if all(buckets.isdisjoint(other) for other, _ in kept):
            kept.append((buckets, record))
    return [record for _, record in kept]


@pytest.mark.parametrize("max_bytes", [2000, 20_000, 1 << 20])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "async"])
def test_modes_and_memory_agree_with_brute_force(tmp_path: Path, mode: str, max_bytes: int) -> None:
    records = corpus(240)
    operator = data.dedup.NearDuplicate(ngram_size=1, _concurrency_mode=mode, _max_workers=2)
    operator._max_bytes = max_bytes
    run(operator, write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    expected = brute_force(operator, records)
    assert node(tmp_path).result.read_bytes() == lines(expected)
    assert 60 < len(expected) < 200


@given(st.lists(st.text("ab, ", max_size=12), max_size=25))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_texts_never_stay_twice(tmp_path: Path, texts: list[str]) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"text": text} for text in texts])
    operator = data.dedup.NearDuplicate(_concurrency_mode="single")
    kept = [record["text"] for record in run(operator, dataset, node(tmp_path)).dataset]
    assert len(kept) == len(set(kept))
    assert {"".join(ngrams(text, 1)) for text in texts} >= {"".join(ngrams(k, 1)) for k in kept}


def test_texts_that_differ_in_one_word_are_dropped_and_different_texts_are_kept(root: Path) -> None:
    original = text_of(1, 400)
    records = [
        {"text": " ".join(original)},
        {"text": " ".join([*original[:200], "another", *original[201:]])},
        {"text": " ".join(text_of(2, 400))},
        {"text": " ".join(original).upper().replace(" ", ", ")},
    ]
    assert data.dedup.NearDuplicate()(records) == [records[0], records[2]]


@pytest.mark.parametrize(("threshold", "kept"), [(0.5, 1), (0.95, 2)])
def test_the_threshold_determines_the_minimum_similarity(
    root: Path, threshold: float, kept: int
) -> None:
    words = text_of(3, 300)
    changed = ["new" if place % 40 == 20 else word for place, word in enumerate(words)]
    records = [{"text": " ".join(words)}, {"text": " ".join(changed)}]  # similarity 0.77
    assert len(data.dedup.NearDuplicate(threshold=threshold)(records)) == kept


@pytest.mark.parametrize("similarity", [0.6, 0.95])
def test_pairs_are_found_about_as_often_as_documented(similarity: float) -> None:
    shared = round(2 * 500 * similarity / (1 + similarity))
    operator = data.dedup.NearDuplicate(ngram_size=1)
    found = 0
    for pair in range(100):
        common = [f"c{pair}x{n}" for n in range(shared)]
        texts = [
            " ".join([*common, *(f"{side}{pair}x{n}" for n in range(500 - shared))])
            for side in "lr"
        ]
        left, right = (set(unpack_buckets(operator.sketch({"text": text}))) for text in texts)
        found += bool(left & right)
    assert found <= 8 if similarity == 0.6 else found >= 92


def test_short_and_empty_texts_are_compared_whole() -> None:
    assert ngrams("One, two three", 5) == ["one two three"]
    assert ngrams("a b c d", 2) == ["a b", "b c", "c d"]
    assert ngrams("  ?! ", 2) == ["?!"]
    assert ngrams("", 2) == [""]


def test_texts_without_spaces_are_cut_into_characters() -> None:
    assert ngrams("重複を除く", 2) == [a + " " + b for a, b in pairwise("重複を除く")]
    assert ngrams("deduplication重複", 1) == ["deduplication", "重", "複"]


def test_a_missing_text_is_an_empty_one(root: Path) -> None:
    records = [{"n": 1}, {"text": ""}, {"text": None}, {"text": "a"}]
    assert data.dedup.NearDuplicate()(records) == [records[0], records[3]]


def test_another_seed_makes_other_buckets() -> None:
    record = {"text": "one two three four five six"}
    first, same, other = (data.dedup.NearDuplicate(seed=seed).sketch(record) for seed in (0, 0, 1))
    assert first == same != other


@pytest.mark.parametrize(
    "option", [{"threshold": 0}, {"threshold": 1.1}, {"permutations": 0}, {"ngram_size": 0}]
)
def test_impossible_options_are_refused_at_construction(option: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=f"{next(iter(option))} must be between"):
        data.dedup.NearDuplicate(**option)


def test_a_missing_extra_is_an_error_that_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rensa", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dagster-dataops\[near-duplicates"):
        data.dedup.NearDuplicate()
