"""Special tokens: add them to a tokenizer, and find their names in texts."""

import re
from collections.abc import Mapping
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.tokenizers.tokenization import (
    FILE_ENDING,
    Encoded,
    EncodedBytes,
    Tokenizer,
)
from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer as tokenizer_of


def chat_tokenizer(name: str, special_ids: Mapping[str, int] | None) -> Tokenizer:
    """Return the tokenizer for texts that a chat template wrote.

    Args:
        name: The name of a tokenizer.
        special_ids: Ids of special tokens by name, for a tokenizer without special tokens.
    """
    plain = tokenizer_of(name)
    plain.encode("")  # refuses a tokenizer without ids
    if name.endswith(FILE_ENDING):
        if special_ids is not None:
            msg = f"special_ids is given, but {name} has special tokens of its own; leave it out"
            raise DefinitionError(msg)
        return plain
    if special_ids is None and name != "bytes":
        msg = f"{name} encodes special tokens as text; give special_ids, such as "
        raise DefinitionError(f"{msg}{{'<|im_start|>': 200264, '<|im_end|>': 200265}}")
    if not special_ids:
        return plain
    _check_ids(plain, special_ids)
    return _WithSpecialTokens(plain, dict(special_ids))


def _check_ids(plain: Tokenizer, ids: Mapping[str, int]) -> None:
    """Check that each special token has a name, and an id that no other token has."""
    names: dict[int, str] = {}
    for name, number in ids.items():
        if not name or number < 0:
            msg = f"special_ids holds {name!r}: {number}; give a name, and an id of at least 0"
            raise DefinitionError(msg)
        token = names.setdefault(number, _text_of(plain, number) or name)
        if token != name:
            msg = f"special_ids holds {name!r}: {number}, the id of {token!r}; give an unused id"
            raise DefinitionError(msg)


def _text_of(plain: Tokenizer, number: int) -> str:
    """Return the text of a token; empty if there is none of this id."""
    try:
        return plain.decode([number])
    except DefinitionError:
        return ""


class _WithSpecialTokens(Tokenizer):
    """A tokenizer with special tokens, at which texts are split first."""

    def __init__(self, plain: Tokenizer, ids: dict[str, int]) -> None:
        super().__init__(plain.name)
        self._plain, self._ids = plain, ids
        self._names = {number: name for name, number in ids.items()}
        self._pattern = name_pattern(ids)

    @override
    def __reduce__(self) -> Any:
        return _WithSpecialTokens, (self._plain, self._ids)

    @property
    @override
    def special(self) -> Mapping[str, int]:
        return self._ids

    @override
    def encode(self, text: str) -> list[int]:
        return self.encode_with_offsets(text).ids

    @override
    def encode_with_offsets(self, text: str) -> Encoded:
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        reached = 0
        for piece in self._pattern.split(text):
            end = reached + len(piece)
            if piece in self._ids:
                ids.append(self._ids[piece])
                offsets.append((reached, end))
            elif piece:
                part = self._plain.encode_with_offsets(piece)
                ids.extend(part.ids)
                offsets.extend((reached + start, reached + end) for start, end in part.places())
            reached = end
        return Encoded(ids, offsets.__getitem__)

    @override
    def encode_plain(self, text: str) -> Encoded | EncodedBytes:
        return self._plain.encode_plain(text)

    @override
    def decode(self, ids: list[int]) -> str:
        texts: list[str] = []
        run: list[int] = []
        for number in ids:
            if number in self._names:
                texts += [self._plain.decode(run), self._names[number]]
                run = []
            else:
                run.append(number)
        return "".join([*texts, self._plain.decode(run)])

    @override
    def starts(self, text: str) -> list[int]:
        encoded = self.encode_with_offsets(text)
        return [encoded.place(number)[0] for number in range(len(encoded.ids))]


def name_pattern(texts: Mapping[str, int]) -> re.Pattern[str]:
    """Return the pattern of texts, the longest first, as a group."""
    ordered = sorted(texts, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, ordered))})")
