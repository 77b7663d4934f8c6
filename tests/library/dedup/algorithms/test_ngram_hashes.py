import pytest

from dagster_dataops.library.dedup.algorithms.ngram_hashes import NgramHashes


def same(one: str, other: str, size: int = 2) -> bool:
    hashes = NgramHashes(size)
    return hashes.of(one).tobytes() == hashes.of(other).tobytes()


def test_case_and_punctuation_do_not_count() -> None:
    assert same("One, two three", "one TWO (three)!")
    assert same("Straße, 2", "STRASSE 2")
    assert not same("one two three", "one three two")


@pytest.mark.parametrize("text", ["", "?!", "a", "a b", "重", "\ud800", "\ud800 a b c"])
def test_short_texts_are_compared_whole(text: str) -> None:
    hashes = NgramHashes(5)
    assert len(hashes.of(text)) == 1
    assert same(text, f" {text}\n")
    assert not same(text, text + " x")


def test_ascii_texts_are_split_as_others() -> None:
    text = "a_b c-d 1.5 e'f\tg\x1fh\x00i"
    mixed = NgramHashes(1).of(f"{text} é")
    assert set(NgramHashes(1).of(text)) < set(mixed)
    assert len(mixed) == 10 + 1


def test_each_ngram_has_a_hash_in_order() -> None:
    words = " ".join(f"w{number}" for number in range(500))
    for size in (1, 2, 5):
        hashes = NgramHashes(size).of(words)
        assert len(hashes) == 500 - size + 1
        assert len(set(hashes)) == len(hashes)
    assert len(set(NgramHashes(1).of("a b a b a"))) == 2


def test_a_function_may_split_the_words() -> None:
    assert len(NgramHashes(1, list).of("abc")) == 3
    assert len(NgramHashes(2, "whitespace").of("a, b c")) == 2
