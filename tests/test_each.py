"""Tests of tests.each."""

import pytest

from tests.each import each


def test_a_failure_names_each_case_that_failed_and_the_others_are_run() -> None:
    seen = []

    @each("word", ["a", "b", "c", "d"])
    def check(word: str) -> None:
        seen.append(word)
        assert word != "b"
        with pytest.raises(KeyError):
            {"c": 1}[word]

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as raised:
        check()

    assert seen == ["a", "b", "c", "d"]
    assert [one.__notes__ for one in raised.value.exceptions] == [["word = 'b'"], ["word = 'c'"]]


@each("number", [1, 2])
@each("word", ["a", "b"])
def test_cases_are_combined_and_share_fixtures(
    request: pytest.FixtureRequest, number: int, word: str
) -> None:
    pairs = request.node.stash.setdefault(_PAIRS, [])
    pairs.append((number, word))

    assert pairs == [(1, "a"), (1, "b"), (2, "a"), (2, "b")][: len(pairs)]


_PAIRS = pytest.StashKey[list[tuple[int, str]]]()
