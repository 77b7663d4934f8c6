"""Tokenizers by name: count the tokens of a text, encode it, and find where it may be cut."""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.unicode_normalization import valid_text
from dagster_dataops.library.option_values import needs_extra

_WORD: Final = re.compile(r"\S+")
# The first bytes of UTF-8 characters; the other bytes of a character are in between.
_CONTINUES: Final = range(0x80, 0xC0)
_FIRST_BYTES: Final = bytes(byte not in _CONTINUES for byte in range(256))


class Tokenizer(ABC):
    """Splits texts into tokens. It has no state, and is pickled as the name for `tokenizer`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @override
    def __reduce__(self) -> tuple[Callable[[str], "Tokenizer"], tuple[str]]:
        return tokenizer, (self.name,)

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return len(self.encode(text))

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of the tokens.

        Raises:
            DefinitionError: The tokenizer has no ids.
        """

    @abstractmethod
    def starts(self, text: str) -> list[int]:
        """Return for each token the index of the character at which it starts.

        A token that starts inside a character has the number -1: the text cannot be cut there.
        """


class _Whitespace(Tokenizer):
    """Tokens are the words between white space; white space belongs to the word before it."""

    @override
    def count(self, text: str) -> int:
        return len(text.split())

    @override
    def encode(self, text: str) -> list[int]:
        msg = "tokenizer 'whitespace' has no token ids; use 'bytes' or a vocabulary"
        raise DefinitionError(msg)

    @override
    def starts(self, text: str) -> list[int]:
        return [match.start() for match in _WORD.finditer(text)]


class _Bytes(Tokenizer):
    """Tokens are the bytes of the text in UTF-8; their ids are 0 to 255."""

    @override
    def count(self, text: str) -> int:
        return len(valid_text(text).encode())

    @override
    def encode(self, text: str) -> list[int]:
        return list(valid_text(text).encode())

    @override
    def starts(self, text: str) -> list[int]:
        return _character_starts(valid_text(text).encode(), [])


class _BytePairs(Tokenizer):
    """A byte-pair vocabulary of the package bpe-openai."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        package, bindings = _bpe_openai(name)
        known = bindings.supported_encodings()
        if name not in known:
            allowed = ", ".join(["bytes", "whitespace", *known])
            msg = f"tokenizer is {name!r}; use the path of a tokenizer.json, or one of {allowed}"
            raise DefinitionError(msg)
        # The bindings count without a list, and take texts of any length.
        self._bindings = bindings.tokenizer_for_encoding(name)
        self._encoding = package.get_encoding(name)

    @override
    def count(self, text: str) -> int:
        try:
            return int(self._bindings.count(text))
        except UnicodeEncodeError:
            return int(self._bindings.count(valid_text(text)))

    @override
    def encode(self, text: str) -> list[int]:
        return list(self._bindings.encode(valid_text(text)))

    @override
    def starts(self, text: str) -> list[int]:
        parts = self._encoding.decode_tokens_bytes(self.encode(text))
        return _character_starts(b"".join(parts), list(map(len, parts)))


class _FromFile(Tokenizer):
    """A tokenizer.json of the package tokenizers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        with needs_extra(f"tokenizer {name!r}", "tokenizers"):
            from tokenizers import Tokenizer as Loaded
        if not Path(name).is_file():
            msg = f"tokenizer is {name!r}, which is no file; give the path of a tokenizer.json"
            raise DefinitionError(msg)
        self._loaded: Any = Loaded.from_file(name)
        self._loaded.no_truncation()
        self._loaded.no_padding()

    @override
    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._loaded.encode(valid_text(text), add_special_tokens=False).ids
        return ids

    @override
    def starts(self, text: str) -> list[int]:
        encoded = self._loaded.encode(valid_text(text), add_special_tokens=False)
        starts: list[int] = []
        reached = -1
        for start, _ in encoded.offsets:
            starts.append(start if start > reached else -1)
            reached = max(reached, start)
        return starts


def _bpe_openai(name: str) -> tuple[Any, Any]:
    """Return the package and its bindings. Importing it reads its vocabularies: about a second.

    Raises:
        MissingExtraError: It is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its files
        with needs_extra(f"tokenizer {name!r}", "tokens"):
            import bpe_openai
            from bpe_openai import _bindings
    return bpe_openai, _bindings


@cache
def tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of an option ``tokenizer``.

    Args:
        name: ``"o200k_base"``, ``"cl100k_base"`` or ``"voyage3_base"`` of bpe-openai; the path of
            a ``tokenizer.json``; ``"whitespace"`` or ``"bytes"``.

    Raises:
        DefinitionError: There is no tokenizer of this name.
        MissingExtraError: Its package is not installed.
    """
    if name == "whitespace":
        return _Whitespace(name)
    if name == "bytes":
        return _Bytes(name)
    return _FromFile(name) if name.endswith(".json") else _BytePairs(name)


def _character_starts(data: bytes, lengths: list[int]) -> list[int]:
    """Return the index of the character at which each token starts, -1 inside a character.

    Args:
        data: The bytes of all tokens.
        lengths: The number of bytes of each token; none if each byte is a token.
    """
    offsets = accumulate(lengths, initial=0) if lengths else range(len(data) + 1)
    starts = list(offsets)[:-1]
    if data.isascii():
        return starts
    first = data.translate(_FIRST_BYTES)
    index = list(accumulate(first, initial=0))
    return [index[start] if first[start] else -1 for start in starts]
