"""Tokenizers by name: count the tokens of a text, encode it, and find where it may be cut."""

import os
import re
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.tokenizers.token_bytes import TokenBytes, token_bytes, trims
from dagster_dataops.library.analysis.unicode_normalization import valid_text
from dagster_dataops.library.loaded_files import LoadedFile
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.file_content import content_of

FILE_ENDING: Final = ".json"
"""The ending of the path of a tokenizer; other names are those of vocabularies."""

_BYTES: Final = range(256)
_IDS: Final = range(1 << 32)  # of the package tokenizers
_WORD: Final = re.compile(r"\S+")
# The first bytes of UTF-8 characters; the other bytes of a character are in between.
_CONTINUES: Final = range(0x80, 0xC0)
_FIRST_BYTES: Final = bytes(byte not in _CONTINUES for byte in range(256))


class Encoded(NamedTuple):
    """The tokens of a text.

    Attributes:
        ids: The id of each token.
        place: Returns start and end, in characters, of the token at an index. A token that has some
            bytes of a character covers this character.
    """

    ids: list[int]
    place: Callable[[int], tuple[int, int]]

    def covering(self, start: int, end: int) -> tuple[int, int]:
        """Return the first token that overlaps a span of characters, and the end of the last one.

        Both are indices of tokens; they are equal if there is none.
        """
        place, numbers = self.place, range(len(self.ids))
        first = bisect_right(numbers, start, key=lambda number: place(number)[1])
        return first, bisect_left(numbers, end, first, key=lambda number: place(number)[0])

    def places(self) -> list[tuple[int, int]]:
        """Return start and end, in characters, of each token."""
        return list(map(self.place, range(len(self.ids))))


class EncodedBytes(NamedTuple):
    """The tokens of a text, each of which is a sequence of its bytes.

    Attributes:
        ids: The id of each token.
        text: The text.
        ends: The end of each token, in bytes.
    """

    ids: list[int]
    text: str
    ends: list[int]

    def place(self, number: int) -> tuple[int, int]:
        """Return start and end, in characters, of the token at an index."""
        start = self.ends[number - 1] if number else 0
        return _character_offsets(self.text, [start, self.ends[number] - start])[1]

    def covering(self, start: int, end: int) -> tuple[int, int]:
        """Return the first token that overlaps a span of characters, and the end of the last one.

        Both are indices of tokens. The span has a character at least.
        """
        if not self.text.isascii():
            start, length = len(self.text[:start].encode()), len(self.text[start:end].encode())
            end = start + length
        first = bisect_right(self.ends, start)
        return first, min(bisect_left(self.ends, end, first) + 1, len(self.ids))

    def places(self) -> list[tuple[int, int]]:
        """Return start and end, in characters, of each token."""
        starts = [0, *self.ends][:-1]
        lengths = [end - start for start, end in zip(starts, self.ends, strict=True)]
        return _character_offsets(self.text, lengths)


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
        """Return the ids of the tokens."""

    @abstractmethod
    def encode_with_offsets(self, text: str) -> Encoded | EncodedBytes:
        """Return the ids of the tokens, with their places in the text."""

    def encode_plain(self, text: str) -> Encoded | EncodedBytes:
        """Return what `encode_with_offsets` does, with names of special tokens as plain text."""
        return self.encode_with_offsets(text)

    @abstractmethod
    def decode(self, ids: list[int]) -> str:
        """Return the text of ids, also of special tokens. Parts of characters become U+FFFD."""

    @property
    def special(self) -> Mapping[str, int]:
        """The ids of the special tokens by name."""
        return {}

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
        raise _no_ids()

    @override
    def encode_with_offsets(self, text: str) -> Encoded:
        raise _no_ids()

    @override
    def decode(self, ids: list[int]) -> str:
        raise _no_ids()

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
    def encode_with_offsets(self, text: str) -> Encoded:
        ids = self.encode(text)
        return Encoded(ids, _character_offsets(valid_text(text), [1] * len(ids)).__getitem__)

    @override
    def decode(self, ids: list[int]) -> str:
        for number in ids:
            if number not in _BYTES:
                raise _no_token(self.name, number)
        return bytes(ids).decode(errors="replace")

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
    def encode_with_offsets(self, text: str) -> Encoded:
        ids = self.encode(text)
        lengths = list(map(len, self._pieces(ids)))
        return Encoded(ids, _character_offsets(valid_text(text), lengths).__getitem__)

    @override
    def decode(self, ids: list[int]) -> str:
        least = min(ids, default=0)
        if least < 0:  # `decode_tokens_bytes` counts from the last token
            raise _no_token(self.name, least)
        try:
            pieces = self._pieces(ids)
        except KeyError as error:
            raise DefinitionError(f"tokenizer {self.name!r}: {error.args[0]}") from None
        return b"".join(pieces).decode(errors="replace")

    def _pieces(self, ids: list[int]) -> list[bytes]:
        pieces: list[bytes] = self._encoding.decode_tokens_bytes(ids)
        return pieces

    @override
    def starts(self, text: str) -> list[int]:
        parts = self._pieces(self.encode(text))
        return _character_starts(b"".join(parts), list(map(len, parts)))


class _FromFile(Tokenizer):
    """A tokenizer.json of the package tokenizers. It is pickled as the path and its digest."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._digest = content_of(name)
        with needs_extra(f"tokenizer {name!r}", "tokenizers"):
            from tokenizers import Tokenizer as Loaded
        if not Path(name).is_file():
            msg = f"tokenizer is {name!r}, which is no file; give the path of a tokenizer.json"
            raise DefinitionError(msg)
        self._loaded: Any = Loaded.from_file(name)
        self._loaded.no_truncation()
        self._loaded.no_padding()

    @override
    def __reduce__(self) -> Any:
        return _of_file, (self.name, self._digest)

    @override
    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._loaded.encode(valid_text(text), add_special_tokens=False).ids
        return ids

    @override
    def encode_with_offsets(self, text: str) -> Encoded | EncodedBytes:
        valid, known = valid_text(text), self._token_bytes
        if known is not None and known.keeps(valid):
            # Without the offsets of all tokens, which take a quarter of the time.
            [fast] = self._loaded.encode_batch_fast([valid], add_special_tokens=False)
            ids: list[int] = fast.ids
            ends = list(accumulate(map(known.lengths.__getitem__, ids)))
            if ends and ends[-1] == (len(valid) if valid.isascii() else len(valid.encode())):
                return EncodedBytes(ids, valid, ends)
        encoded = self._untrimmed.encode(valid, add_special_tokens=False)
        return Encoded(encoded.ids, encoded.token_to_chars)

    @override
    def encode_plain(self, text: str) -> Encoded:
        encoded = self._without_special.encode(valid_text(text), add_special_tokens=False)
        return Encoded(encoded.ids, encoded.token_to_chars)

    @cached_property
    def _without_special(self) -> Any:
        """The tokenizer, which encodes the names of special tokens as text."""
        copy = type(self._untrimmed).from_str(self._untrimmed.to_str())
        copy.encode_special_tokens = True
        return copy

    @cached_property
    def _token_bytes(self) -> TokenBytes | None:
        known = token_bytes(self._loaded)
        if known is not None:
            # Else `encode_batch_fast` starts threads, and a process with threads cannot be forked.
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        return known

    @cached_property
    def _untrimmed(self) -> Any:
        """The tokenizer, with offsets that include the spaces at the ends of a token."""
        if not trims(self._loaded):
            return self._loaded
        from tokenizers.processors import ByteLevel

        untrimmed = type(self._loaded).from_str(self._loaded.to_str())
        untrimmed.post_processor = ByteLevel(trim_offsets=False)
        return untrimmed

    @override
    def decode(self, ids: list[int]) -> str:
        for number in ids:  # `decode` leaves out ids without a token
            if number not in _IDS or self._loaded.id_to_token(number) is None:
                raise _no_token(self.name, number)
        text: str = self._loaded.decode(ids, skip_special_tokens=False)
        return text

    @property
    @override
    def special(self) -> Mapping[str, int]:
        added = self._loaded.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items() if token.special}

    @override
    def starts(self, text: str) -> list[int]:
        encoded = self._loaded.encode(valid_text(text), add_special_tokens=False)
        starts: list[int] = []
        reached = -1
        for start, _ in encoded.offsets:
            starts.append(start if start > reached else -1)
            reached = max(reached, start)
        return starts


def _no_ids() -> DefinitionError:
    return DefinitionError("tokenizer 'whitespace' has no token ids; use 'bytes' or a vocabulary")


def _no_token(name: str, number: int) -> DefinitionError:
    return DefinitionError(f"tokenizer {name!r} has no token of the id {number}")


def _bpe_openai(name: str) -> tuple[Any, Any]:
    """Return the package and its bindings. Importing it reads its vocabularies: about a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its files
        with needs_extra(f"tokenizer {name!r}", "tokens"):
            import bpe_openai
            from bpe_openai import _bindings
    return bpe_openai, _bindings


def tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of an option ``tokenizer``.

    Args:
        name: ``"o200k_base"``, ``"cl100k_base"`` or ``"voyage3_base"`` of bpe-openai; the path of
            a ``tokenizer.json``; ``"whitespace"`` or ``"bytes"``.
    """
    return _of_file(name) if name.endswith(FILE_ENDING) else _of_name(name)


def _of_file(name: str, digest: str | None = None) -> Tokenizer:
    loaded: Tokenizer = LoadedFile(_FromFile, name, digest=digest).value
    return loaded


@cache
def _of_name(name: str) -> Tokenizer:
    if name == "whitespace":
        return _Whitespace(name)
    return _Bytes(name) if name == "bytes" else _BytePairs(name)


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


def _character_offsets(text: str, lengths: list[int]) -> list[tuple[int, int]]:
    """Return start and end, in characters, of tokens whose lengths in bytes are given."""
    ends = list(accumulate(lengths))
    starts = [0, *ends][:-1]
    if text.isascii():
        return list(zip(starts, ends, strict=True))
    # The number of characters that begin before each byte.
    begun = list(accumulate(text.encode().translate(_FIRST_BYTES), initial=0))
    return [(begun[start + 1] - 1, begun[end]) for start, end in zip(starts, ends, strict=True)]
