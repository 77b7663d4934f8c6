import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError


def texts(operator, text: str) -> list[str]:
    return [record["text"] for record in operator.forward({"text": text})]


def tokens(text: str, tokenizer: str = "o200k_base") -> int:
    return int(data.tokens.Count(tokenizer).forward({"text": text})["tokens"])


def test_as_many_sentences_as_fit_make_a_piece() -> None:
    text = "One two.  Three four.\nFive. Six seven eight."
    assert texts(data.chunk.Sentences(max_chars=22), text) == [
        "One two.  Three four.",
        "Five. Six seven eight.",
    ]
    assert texts(data.chunk.Sentences(), text) == [text]


def test_a_piece_repeats_sentences_if_there_is_room() -> None:
    operator = data.chunk.Sentences(max_chars=8, overlap_sentences=1)
    text = "One. Tw. Th. Four five six."
    assert texts(operator, text) == ["One. Tw.", "Tw. Th.", "Th. Four", "five", "six."]


def test_a_long_sentence_is_cut_at_spaces() -> None:
    assert texts(data.chunk.Sentences(max_chars=5), "abc defg hijklmnop.") == [
        "abc",
        "defg",
        "hijkl",
        "mnop.",
    ]


def test_a_part_up_to_a_space_may_have_more_tokens_than_a_longer_one() -> None:
    pieces = texts(data.chunk.Sentences(max_tokens=4), "b \nb\n  \n\n b")

    assert "".join("".join(pieces).split()) == "bbb"
    assert max(tokens(piece) for piece in pieces) <= 4


@given(st.text("ab. \n好😀", max_size=60), st.integers(4, 12), st.integers(0, 3))
def test_no_piece_has_too_many_tokens(text: str, most: int, overlap: int) -> None:
    operator = data.chunk.Sentences(
        max_tokens=most, tokenizer="bytes", overlap_sentences=overlap, max_chars=6
    )
    found = texts(operator, text)
    assert all(len(piece) <= 6 and tokens(piece, "bytes") <= most for piece in found)
    if not overlap:
        assert "".join("".join(found).split()) == "".join(text.split())
    else:
        assert set(text) - set("".join(found)) <= {" ", "\n"}


def test_sentences_may_be_a_function() -> None:
    operator = data.chunk.Sentences(max_chars=3, sentences=lambda text: text.split(","))
    assert texts(operator, "ab,cd") == ["ab", "cd"]
    with pytest.raises(UnfitRecordError, match="no part of the text"):
        data.chunk.Sentences(sentences=lambda text: [text.upper()]).forward({"text": "ab"})
