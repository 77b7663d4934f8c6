import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.library.adversarial import survives


def texts(operator, text: str) -> list[str]:
    return [record["text"] for record in operator.forward({"text": text})]


def test_a_pattern_alone_cuts_at_each_match() -> None:
    assert texts(data.chunk.Characters(), "a\n\nb\n\n\n\n c ") == ["a", "b", " c "]


def test_a_length_alone_cuts_with_overlap() -> None:
    operator = data.chunk.Characters(max_len=4, split_pattern=None, overlap_len=1)
    assert texts(operator, "abcdefgh") == ["abcd", "defg", "gh"]
    assert texts(operator, "abcdefg") == ["abcd", "defg", "g"]
    assert texts(operator, "abcd") == ["abcd"]


def test_both_cut_at_the_last_match_that_fits() -> None:
    operator = data.chunk.Characters(max_len=6, split_pattern=" ", overlap_len=2)
    assert texts(operator, "ab cd efghijklmn") == ["ab cd", "efghij", "ijklmn"]


def test_blank_pieces_are_left_out_but_for_the_last() -> None:
    operator = data.chunk.Characters(max_len=4, split_pattern=" ")
    assert texts(operator, "   abcdefgh") == ["abcd", "efgh"]
    assert texts(operator, "abcd   ") == ["abcd", "   "]


def test_records_are_copies_with_a_number() -> None:
    operator = data.chunk.Characters(output_key="piece", index_key="n")
    assert operator.forward({"text": "a\n\nb", "id": 7}) == [
        {"text": "a\n\nb", "id": 7, "piece": "a", "n": 0},
        {"text": "a\n\nb", "id": 7, "piece": "b", "n": 1},
    ]
    inner = data.chunk.Characters(input_key="doc.body", index_key=None)
    assert inner([{"doc": {"body": "a\n\nb"}}]) == [{"doc": {"body": "a"}}, {"doc": {"body": "b"}}]


@given(st.text("ab \n", max_size=40), st.integers(1, 9), st.sampled_from([None, "", "b*", " |\n"]))
def test_a_piece_has_at_most_max_len_characters(text: str, most: int, pattern: str | None) -> None:
    found = texts(data.chunk.Characters(max_len=most, split_pattern=pattern), text)
    assert all(len(piece) <= most for piece in found)
    assert all(piece.strip() for piece in found[:-1]) or pattern is None
    if pattern is None:
        assert "".join(found) == text


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DefinitionError, match="split_pattern"):
        data.chunk.Characters(split_pattern=None)
    with pytest.raises(DefinitionError, match="overlap_len"):
        data.chunk.Characters(max_len=3, overlap_len=3)
    with pytest.raises(DefinitionError, match="no regular expression"):
        data.chunk.Characters(split_pattern="(")
    with pytest.raises(DefinitionError, match="output_key"):
        data.chunk.Characters(input_key="texts[*]")


def test_hostile_texts_are_cut() -> None:
    survives(data.chunk.Characters(max_len=100, split_pattern=r"[.!?]\s+", overlap_len=10).forward)
