import base64
import math
import random
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.examples import at_most
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
        for _ in range(generator.randrange(16) if number >= count // 4 else 0):
            words[generator.randrange(len(words))] = f"x{number}"
        records.append({"n": number, "text": " ".join(words)})
    return records


def brute_force(operator: Any, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep records that share no bucket with an earlier kept record."""
    kept: list[tuple[set[str], dict[str, Any]]] = []
    for record in records:
        buckets = set(wrap(operator.sketch(record)[0], 16))
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


@pytest.mark.slow
@given(st.lists(st.text("ab, ", max_size=12), max_size=25))
@settings(max_examples=at_most(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_texts_never_stay_twice(tmp_path: Path, texts: list[str]) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"text": text} for text in texts])
    operator = data.dedup.NearDuplicate(_concurrency_mode="single")
    kept = [record["text"] for record in run(operator, dataset, node(tmp_path)).dataset]
    assert len(kept) == len(set(kept))
    of = {text: operator.sketch({"text": text})[0] for text in texts}
    assert len({of[text] for text in kept}) == len(kept)
    assert {of[text] for text in kept} == set(of.values())


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
    records = [{"text": " ".join(words)}, {"text": " ".join(changed)}]  # similarity 0.78
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
        left, right = (set(wrap(operator.sketch({"text": text})[0], 16)) for text in texts)
        found += bool(left & right)
    assert 8 <= found <= 38 if similarity == 0.6 else found >= 98


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
    with pytest.raises(DefinitionError, match=f"{next(iter(option))}'? must be between"):
        data.dedup.NearDuplicate(**option)


def pair(seed: int, words: int, changed: int) -> list[dict[str, Any]]:
    original = text_of(seed, words)
    other = list(original)
    for place in range(changed):
        other[10 + place * 20] = f"changed{seed}x{place}"
    return [{"text": " ".join(original)}, {"text": " ".join(other)}]


def jaccard(one: str, other: str, size: int = 5) -> float:
    first, second = (
        {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}
        for words in (one.split(), other.split())
    )
    return len(first & second) / len(first | second)


def test_with_verify_nearly_all_similar_pairs_and_no_others_are_removed(root: Path) -> None:
    pairs = [pair(seed, 100 + seed % 120, 1 + seed % 5) for seed in range(240)]
    records = [record for both in pairs for record in both]
    kept = {record["text"] for record in data.dedup.NearDuplicate(verify=True)(records)}
    similar = [jaccard(one["text"], other["text"]) >= 0.8 for one, other in pairs]
    found = [other["text"] not in kept for _, other in pairs]
    right = sum(a and b for a, b in zip(similar, found, strict=True))
    assert right / sum(found) == 1
    assert right / sum(similar) >= 0.98
    assert 60 < sum(similar) < 180


def test_the_default_finds_nearly_all_pairs_from_the_threshold_on(root: Path) -> None:
    operator = data.dedup.NearDuplicate()
    assert (operator._bands, operator._rows) == (14, 8)
    pairs = [pair(seed, 100 + seed % 120, 1 + seed % 2) for seed in range(300)]
    near = [both for both in pairs if jaccard(both[0]["text"], both[1]["text"]) >= 0.8]
    kept = operator([record for both in near for record in both])
    assert len(near) > 100
    assert (2 * len(near) - len(kept)) / len(near) >= 0.98


@pytest.mark.slow
def test_the_longest_or_the_best_of_similar_records_stays(root: Path) -> None:
    words = text_of(5, 300)
    records = [
        {"text": " ".join(words), "score": 2},
        {"text": " ".join(text_of(6, 50)), "score": None},
        {"text": " ".join([*words, "more"]), "score": 1},
        {"text": " ".join(words), "score": 3.5},
    ]
    assert data.dedup.NearDuplicate(keep="longest")(records) == [records[1], records[2]]
    assert data.dedup.NearDuplicate(keep="score")(records) == [records[1], records[3]]
    assert data.dedup.NearDuplicate(keep="first")(records) == records[:2]
    allowed = data.dedup.NearDuplicate(keep="missing", _missing="allow")
    assert allowed(records) == records[:2]


def test_with_a_cluster_key_records_are_marked_instead_of_dropped(root: Path) -> None:
    records = [{"text": "a b c d e f"}, {"text": "g"}, {"text": "A b c, d e f"}, {"text": "g"}]
    marked = data.dedup.NearDuplicate(cluster_key="cluster", keep="longest")(records)
    assert [record["text"] for record in marked] == [record["text"] for record in records]
    assert [record["cluster"] for record in marked] == [
        {"id": 2, "size": 2, "kept": False},
        {"id": 1, "size": 2, "kept": True},
        {"id": 2, "size": 2, "kept": True},
        {"id": 1, "size": 2, "kept": False},
    ]


def test_the_preset_of_fineweb_joins_components() -> None:
    operator = data.dedup.NearDuplicate(preset="fineweb")
    assert (operator._bands, operator._rows) == (14, 8)
    assert operator._similarity.linkage == "component"
    other = data.dedup.NearDuplicate(preset="fineweb", rows=4, linkage="kept")
    assert (other._bands, other._rows, other._similarity.linkage) == (14, 4, "kept")


@pytest.mark.parametrize(
    "option", [{"preset": "x"}, {"bands": 3}, {"bands": 0, "rows": 1}, {"linkage": "all"}]
)
def test_unknown_presets_and_half_shapes_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(option))):
        data.dedup.NearDuplicate(**option)


def ngrams(text: str, size: int, words: Any = "regex") -> set[int]:
    """Return the 32-bit hashes of the n-grams of a text."""
    operator = data.dedup.NearDuplicate(verify=True, ngram_size=size, words=words)
    return set(np.frombuffer(base64.b64decode(operator.sketch({"text": text})[2]), "<u4").tolist())


def test_case_and_punctuation_do_not_count() -> None:
    assert ngrams("One, two three", 2) == ngrams("one TWO (three)!", 2)
    assert ngrams("Straße, 2", 2) == ngrams("STRASSE 2", 2)
    assert ngrams("one two three", 2) != ngrams("one three two", 2)


@pytest.mark.parametrize("text", ["", "?!", "a", "a b", "重", "\ud800", "\ud800 a b c"])
def test_short_texts_are_compared_whole(text: str) -> None:
    assert len(ngrams(text, 5)) == 1
    assert ngrams(text, 2) == ngrams(f" {text}\n", 2)
    assert ngrams(text, 2) != ngrams(text + " x", 2)


def test_each_ngram_has_a_hash() -> None:
    words = " ".join(f"w{number}" for number in range(500))
    for size in (1, 2, 5):
        assert len(ngrams(words, size)) == 500 - size + 1
    assert len(ngrams("a b a b a", 1)) == 2
    assert len(ngrams("abc", 1, list)) == 3
    assert len(ngrams("a, b c", 2, "whitespace")) == 2


def test_the_fast_path_for_ascii_equals_the_general_one() -> None:
    text = "a_b c-d 1.5 e'f\tg\x1fh\x00i"
    assert ngrams(text, 1) < ngrams(f"{text} é", 1)
    assert len(ngrams(f"{text} é", 1)) == 10 + 1


def test_records_are_ranked_by_length_or_a_number() -> None:
    def rank(keep: str, value: Any = None) -> float:
        operator = data.dedup.NearDuplicate(keep=keep)
        return operator.sketch({"text": "abc", "score": value})[1]

    assert (rank("longest"), rank("score", 1.5)) == (3, 1.5)
    assert all(one < -1e300 for one in (rank("score"), rank("score", math.nan), rank("gone")))
    with pytest.raises(TypeError, match="keep='score' needs numbers.*found a str: 'x'"):
        rank("score", "x")


@pytest.mark.parametrize("score", ["1", True, [1]])
def test_a_score_that_is_no_number_is_an_error_of_its_record(root: Path, score: Any) -> None:
    records = [{"text": "a", "score": 1}, {"text": "b", "score": score}]
    assert data.dedup.NearDuplicate(keep="score")(records) == records[:1]


def test_code_is_compared_without_its_notice():
    notice = "/* Copyright 2020 X\n" + "".join(f" * word {n}\n" for n in range(200)) + " */\n"
    texts = [f"{notice}int {name}(void);\n" for name in ("first", "second")]
    records = [{"text": text} for text in (*texts, texts[0].replace("2020", "2024"))]

    assert len(data.dedup.NearDuplicate()(records)) == 1
    assert data.dedup.NearDuplicate(ignore_notices=True)(records) == records[:2]
    assert data.dedup.SimHash(ignore_notices=True)(records) == records[:2]
