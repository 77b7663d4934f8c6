import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.tokenization import tokenizer
from tests.library.adversarial import survives

TEXTS = st.text("ab \n好é😀ก", max_size=40)


def texts(operator, text: str) -> list[str]:
    return [record["text"] for record in operator.forward({"text": text})]


@pytest.mark.parametrize("name", ["o200k_base", "bytes", "whitespace"])
@given(
    text=st.lists(st.sampled_from("abcdé好ก😀字"), unique=True).map("".join), most=st.integers(1, 8)
)
def test_pieces_without_overlap_are_the_text(name: str, text: str, most: int) -> None:
    found = texts(data.chunk.Tokens(name, max_tokens=most), text)
    assert "".join(found) == ("" if name == "whitespace" and text.isspace() else text)
    assert all(found)
    for piece in found:
        assert len(piece) == 1 or name == "o200k_base" or tokenizer(name).count(piece) <= most


@given(
    text=st.lists(st.sampled_from("abcdé好ก😀字"), unique=True).map("".join),
    most=st.integers(2, 8),
    overlap=st.integers(1, 7),
)
def test_pieces_with_overlap_cover_the_text(text: str, most: int, overlap: int) -> None:
    operator = data.chunk.Tokens("bytes", max_tokens=most, overlap=min(overlap, most - 1))
    position = end = 0
    for piece in texts(operator, text):
        position = text.index(piece, position)
        assert position <= end
        end = max(end, position + len(piece))
    assert end == len(text)


def test_words_are_tokens_with_the_space_behind_them() -> None:
    operator = data.chunk.Tokens("whitespace", max_tokens=2, overlap=1)
    assert texts(operator, " a b  c d") == [" a b  ", "b  c ", "c d"]


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DefinitionError, match="overlap"):
        data.chunk.Tokens(max_tokens=3, overlap=3)


@pytest.mark.parametrize("name", ["o200k_base", "bytes", "whitespace"])
def test_hostile_texts_are_cut(name: str) -> None:
    survives(data.chunk.Tokens(name, max_tokens=100, overlap=20).forward)
