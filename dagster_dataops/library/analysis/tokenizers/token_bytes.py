"""Lengths of byte-level tokens, from which the places of tokens in a text follow."""

import json
import unicodedata
from collections.abc import Callable
from typing import Any, Final, NamedTuple

# Pre-tokenizers that change no character: they split a text, and may remove some of it.
_SPLITS: Final = frozenset({"Split", "Digits"})
# The length of a token whose bytes are unknown: with it, no sum is the length of a text.
_NO_LENGTH: Final = 1 << 60


class TokenBytes(NamedTuple):
    """The lengths of the tokens of a byte-level tokenizer.

    Attributes:
        lengths: The number of bytes of each token, by id.
        keeps: Returns whether the normalizer leaves a text as it is.
    """

    lengths: list[int]
    keeps: Callable[[str], bool]


def token_bytes(loaded: Any) -> TokenBytes | None:
    """Return the lengths of the tokens of a tokenizer; ``None`` if it is not byte-level.

    Each token of such a tokenizer is a sequence of bytes of the text, and no byte is added or
    replaced. If the lengths of the tokens of a text add up to its length, none was removed either.
    """
    normalizer = _state(loaded.normalizer)
    keeps = _NORMALIZERS.get(normalizer.get("type"))
    if (
        keeps is None
        or not _only_splits(_state(loaded.pre_tokenizer))
        or not _merges_bytes(loaded.model)
    ):
        return None
    lengths = _lengths(loaded)
    return None if lengths is None else TokenBytes(lengths, keeps)


def trims(loaded: Any) -> bool:
    """Return whether the offsets of tokens leave out the spaces at their ends."""
    return '"trim_offsets":true' in json.dumps(_state(loaded.post_processor), separators=(",", ":"))


def _state(step: Any) -> dict[str, Any]:
    """Return the options of a step of a tokenizer; empty if there is no step."""
    state: dict[str, Any] = {} if step is None else json.loads(step.__getstate__())
    return state


def _is_composed(text: str) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFC", text)


def _is_any(_text: str) -> bool:
    return True


_NORMALIZERS: Final[dict[str | None, Callable[[str], bool]]] = {None: _is_any, "NFC": _is_composed}


def _only_splits(state: dict[str, Any]) -> bool:
    """Return whether the pre-tokenizers only split a text, and write its bytes as characters."""
    *splits, last = state["pretokenizers"] if state.get("type") == "Sequence" else [state]
    plain = last.get("type") == "ByteLevel" and not last["add_prefix_space"]
    return plain and all(step["type"] in _SPLITS for step in splits)


def _merges_bytes(model: Any) -> bool:
    """Return whether a model merges byte pairs, without prefixes, suffixes or dropout."""
    if type(model).__name__ != "BPE":
        return False
    return not (model.continuing_subword_prefix or model.end_of_word_suffix or model.dropout)


def _lengths(loaded: Any) -> list[int] | None:
    """Return the number of bytes of each token; ``None`` if a byte has no token, or two lengths."""
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = frozenset(ByteLevel.alphabet())
    vocabulary: dict[str, int] = loaded.get_vocab(with_added_tokens=False)
    if not alphabet <= vocabulary.keys():
        return None
    lengths = {
        number: len(token) if alphabet.issuperset(token) else _NO_LENGTH
        for token, number in vocabulary.items()
    }
    for number, token in loaded.get_added_tokens_decoder().items():
        length = len(token.content.encode())
        if lengths.get(number, length) not in {length, _NO_LENGTH}:
            return None
        lengths[number] = length
    return [lengths.get(number, _NO_LENGTH) for number in range(max(lengths) + 1)]
