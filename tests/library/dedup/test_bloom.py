import random
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def text_of(seed: int, words: int = 50) -> str:
    generator = random.Random(seed)
    return " ".join(f"w{generator.randrange(100_000)}" for _ in range(words))


def mixed(first: int, second: int, words: int) -> str:
    return " ".join([*text_of(first).split()[:words], *text_of(second).split()[words:]])


def test_texts_made_of_earlier_ones_go(root: Path) -> None:
    records = [
        {"id": 0, "text": text_of(1)},
        {"id": 1, "text": text_of(2)},
        {"id": 2, "text": text_of(1).upper()},
        {"id": 3, "text": mixed(1, 2, 10)},
        {"id": 4, "text": mixed(1, 3, 45)},
        {"id": 5, "text": mixed(1, 4, 25)},
        {"id": 6, "text": "short text"},
        {"id": 7, "text": "Short, text"},
        {"id": 8, "text": None},
        {"id": 9, "text": ""},
    ]
    kept = data.dedup.Bloom(ngram_size=2, max_memory_mb=1)(records)
    assert [record["id"] for record in kept] == [0, 1, 5, 6, 8]


def test_a_share_at_the_threshold_is_kept(root: Path) -> None:
    given = [{"text": "a b c d"}, {"text": "a b x y"}]
    for threshold, kept in [(0.5, 2), (0.49, 1)]:
        operator = data.dedup.Bloom(ngram_size=1, threshold=threshold, max_memory_mb=1)
        assert len(operator(given)) == kept


def test_dropped_texts_and_repeats_inside_a_text_count(root: Path) -> None:
    operator = data.dedup.Bloom(ngram_size=1, threshold=0.5, max_memory_mb=1)
    given = [{"text": "a a a a"}, {"text": "a a c"}, {"text": "c d"}, {"text": "d e"}]
    assert operator(given) == [given[0], *given[2:]]
    again = [{"text": "x c c"}, {"text": "c c x y"}]
    assert operator([*given[:2], *again]) == [given[0]]


def test_new_texts_are_rarely_dropped(root: Path) -> None:
    records = [{"text": text_of(seed, 100)} for seed in range(400)]
    operator = data.dedup.Bloom(ngram_size=3, threshold=0.05, max_memory_mb=1)
    assert len(operator(records)) == 400


@pytest.mark.parametrize(
    "option", [{"hashes": 0}, {"ngram_size": 0}, {"threshold": 1.5}, {"max_memory_mb": 0}]
)
def test_wrong_options_are_refused(option: dict) -> None:
    with pytest.raises(DefinitionError, match=next(iter(option))):
        data.dedup.Bloom(**option)
