from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.examples import at_most
from tests.execution.helpers import node, run, write_input


def brute_force(texts: list[str], size: int) -> list[str]:
    """Remove the words of windows that occurred before; leave out empty texts."""
    seen: set[tuple[str, ...]] = set()
    left = []
    for text in texts:
        words = text.split()
        removed: set[int] = set()
        for at in range(len(words) - size + 1):
            window = tuple(words[at : at + size])
            if window in seen:
                removed.update(range(at, at + size))
            seen.add(window)
        kept = [word for at, word in enumerate(words) if at not in removed]
        left += [" ".join(kept)] * bool(kept or not removed)
    return left


@pytest.mark.slow
@given(
    texts=st.lists(st.lists(st.sampled_from("abc"), max_size=12).map(" ".join), max_size=8),
    size=st.integers(1, 4),
    max_bytes=st.sampled_from([300, 1 << 20]),
)
@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_repeated_runs_of_words_are_removed(
    tmp_path: Path, texts: list[str], size: int, max_bytes: int
) -> None:
    operator = data.dedup.Substring(min_tokens=size, _concurrency_mode="single")
    operator._max_bytes = max_bytes
    dataset = write_input(tmp_path / "input.jsonl", [{"text": text} for text in texts])
    found = [record["text"].strip() for record in run(operator, dataset, node(tmp_path)).dataset]
    assert found == brute_force(texts, size)


def texts(operator: Any, given: list[Any]) -> list[Any]:
    return [record["text"] for record in operator([{"text": text} for text in given])]


def test_the_rest_keeps_its_white_space(root: Path) -> None:
    passage = "one two  three\nfour"
    given = [passage, f"\n A  b {passage}\n\nc\td ", f"{passage} x"]
    assert texts(data.dedup.Substring(min_tokens=4), given) == [passage, "\n A  b c\td ", "x"]
    kept = texts(data.dedup.Substring(min_tokens=4, min_words=2), given)
    assert kept == [passage, "\n A  b c\td "]


def test_words_may_be_split_otherwise(root: Path) -> None:
    given = ["重複を除く。", "あ重複を除くい"]
    operator = data.dedup.Substring(min_tokens=5, words="regex")
    assert texts(operator, given) == [given[0], "あい"]


def test_impossible_options_are_refused() -> None:
    with pytest.raises(DefinitionError, match="'min_tokens' must be at least 1"):
        data.dedup.Substring(min_tokens=0)
