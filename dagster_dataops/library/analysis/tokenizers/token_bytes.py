"""The bytes of a text that tokens stand for, where these make up the text."""

import json
import unicodedata
from collections.abc import Callable
from typing import Any, Final, NamedTuple

# Steps before byte-level tokens that only cut a text, or leave out some of it.
_CUTS: Final = frozenset({"Split", "Digits"})
# The length of a token that is no text in bytes: with it, no sum is that of a text.
_NO_LENGTH: Final = 1 << 60


class TokenBytes(NamedTuple):
    """What byte-level tokens tell of their text.

    Attributes:
        lengths: The number of bytes of each token, by id.
        keeps: Whether the tokenizer takes a text as it is.
    """

    lengths: list[int]
    keeps: Callable[[str], bool]


def token_bytes(loaded: Any) -> TokenBytes | None:
    """Return what the tokens of a tokenizer tell of their text; ``None`` if they do not tell.

    They do if each is a run of bytes, and nothing is added or replaced: so a text whose length is
    the sum of those of its tokens is made of them.

    Args:
        loaded: A tokenizer of the package tokenizers.
    """
    normalizer = _state(loaded.normalizer)
    keeps = _NORMALIZERS.get(normalizer.get("type"))
    if keeps is None or not _cuts_alone(_state(loaded.pre_tokenizer)) or not _pairs(loaded.model):
        return None
    lengths = _lengths(loaded)
    return None if lengths is None else TokenBytes(lengths, keeps)


def trims(loaded: Any) -> bool:
    """Return whether the places of tokens leave out the spaces at their ends."""
    return '"trim_offsets":true' in json.dumps(_state(loaded.post_processor), separators=(",", ":"))


def _state(step: Any) -> dict[str, Any]:
    """Return the options of a step; none if there is no step."""
    state: dict[str, Any] = {} if step is None else json.loads(step.__getstate__())
    return state


def _is_composed(text: str) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFC", text)


def _is_any(_text: str) -> bool:
    return True


_NORMALIZERS: Final[dict[str | None, Callable[[str], bool]]] = {None: _is_any, "NFC": _is_composed}


def _cuts_alone(state: dict[str, Any]) -> bool:
    """Return whether the steps before the model cut a text, and write its bytes as characters."""
    *cuts, last = state["pretokenizers"] if state.get("type") == "Sequence" else [state]
    plain = last.get("type") == "ByteLevel" and not last["add_prefix_space"]
    return plain and all(step["type"] in _CUTS for step in cuts)


def _pairs(model: Any) -> bool:
    """Return whether a model merges pairs of bytes, and marks nothing."""
    marks = (
        (model.continuing_subword_prefix, model.end_of_word_suffix, model.dropout)
        if (type(model).__name__ == "BPE")
        else (True,)
    )
    return not any(marks)


def _lengths(loaded: Any) -> list[int] | None:
    """Return the number of bytes of each token; ``None`` if a byte has no token, or two lengths."""
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = frozenset(ByteLevel.alphabet())
    vocabulary: dict[str, int] = loaded.get_vocab(with_added_tokens=False)
    if not alphabet <= vocabulary.keys():
        return None
    found = {
        number: len(token) if alphabet.issuperset(token) else _NO_LENGTH
        for token, number in vocabulary.items()
    }
    for number, token in loaded.get_added_tokens_decoder().items():
        length = len(token.content.encode())
        if found.get(number, length) not in {length, _NO_LENGTH}:
            return None
        found[number] = length
    return [found.get(number, _NO_LENGTH) for number in range(max(found) + 1)]
