import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

TEXTS = st.text("ab \n好é😀ก", max_size=40)


def texts(operator, text: str) -> list[str]:
    return [record["text"] for record in operator.forward({"text": text})]


def test_a_pattern_alone_cuts_at_each_match() -> None:
    assert texts(data.chunk.Characters(), "a\n\nb\n\n\n\n c ") == ["a", "b", " c "]


def test_a_length_alone_cuts_with_overlap() -> None:
    operator = data.chunk.Characters(max_chars=4, split_pattern=None, overlap_chars=1)
    assert texts(operator, "abcdefgh") == ["abcd", "defg", "gh"]
    assert texts(operator, "abcdefg") == ["abcd", "defg", "g"]
    assert texts(operator, "abcd") == ["abcd"]


def test_both_cut_at_the_last_match_that_fits() -> None:
    operator = data.chunk.Characters(max_chars=6, split_pattern=" ", overlap_chars=2)
    assert texts(operator, "ab cd efghijklmn") == ["ab cd", "efghij", "ijklmn"]


def test_blank_pieces_are_left_out_but_for_the_last() -> None:
    operator = data.chunk.Characters(max_chars=4, split_pattern=" ")
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
    found = texts(data.chunk.Characters(max_chars=most, split_pattern=pattern), text)
    assert all(len(piece) <= most for piece in found)
    assert all(piece.strip() for piece in found[:-1]) or pattern is None
    if pattern is None:
        assert "".join(found) == text


def test_options_of_characters_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DefinitionError, match="split_pattern"):
        data.chunk.Characters(split_pattern=None)
    with pytest.raises(DefinitionError, match="overlap_chars"):
        data.chunk.Characters(max_chars=3, overlap_chars=3)
    with pytest.raises(DefinitionError, match="no regular expression"):
        data.chunk.Characters(split_pattern="(")
    with pytest.raises(DefinitionError, match="output_key"):
        data.chunk.Characters(input_key="texts[*]")


@pytest.mark.parametrize("name", ["o200k_base", "bytes", "whitespace"])
@given(
    text=st.lists(st.sampled_from("abcdé好ก😀字"), unique=True).map("".join), most=st.integers(1, 8)
)
def test_pieces_without_overlap_are_the_text(name: str, text: str, most: int) -> None:
    found = texts(data.chunk.Tokens(name, max_tokens=most), text)
    assert "".join(found) == ("" if name == "whitespace" and text.isspace() else text)
    assert all(found)
    count = data.tokens.Count(name)
    for piece in found:
        tokens = count.forward({"text": piece})["tokens"]
        assert len(piece) == 1 or name == "o200k_base" or tokens <= most


@given(
    text=st.lists(st.sampled_from("abcdé好ก😀字"), unique=True).map("".join),
    most=st.integers(2, 8),
    overlap=st.integers(1, 7),
)
def test_pieces_with_overlap_cover_the_text(text: str, most: int, overlap: int) -> None:
    operator = data.chunk.Tokens("bytes", max_tokens=most, overlap_tokens=min(overlap, most - 1))
    position = end = 0
    for piece in texts(operator, text):
        position = text.index(piece, position)
        assert position <= end
        end = max(end, position + len(piece))
    assert end == len(text)


def test_words_are_tokens_with_the_space_behind_them() -> None:
    operator = data.chunk.Tokens("whitespace", max_tokens=2, overlap_tokens=1)
    assert texts(operator, " a b  c d") == [" a b  ", "b  c ", "c d"]


def test_options_of_tokens_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DefinitionError, match="overlap"):
        data.chunk.Tokens(max_tokens=3, overlap_tokens=3)


def test_a_text_is_cut_at_lines_before_words() -> None:
    operator = data.chunk.Semantic(3)
    found = operator.forward({"text": "a b c\nd e\nf"})
    assert [record["text"] for record in found] == ["a b c", "d e\nf"]


@pytest.mark.parametrize(("unit", "size"), [("characters", 5), ("tokens", 2), ("words", 1)])
def test_the_unit_is_an_option(unit: str, size: int) -> None:
    found = data.chunk.Semantic(size, unit).forward({"text": "some words of prose"})
    assert [record["text"] for record in found] == [
        "some",
        "words",
        "of",
        "prose",
    ] or unit != "words"
    assert len(found) > 1


def test_options_of_semantic_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DefinitionError, match="unit"):
        data.chunk.Semantic(unit="pages")
    with pytest.raises(DefinitionError, match="overlap"):
        data.chunk.Semantic(10, overlap=10)
