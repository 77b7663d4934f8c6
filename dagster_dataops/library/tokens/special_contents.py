"""Special tokens in the contents of conversations: refused, or encoded as plain text."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import MESSAGES, TOOLS
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.analysis.tokenizers.tokenization import (
    Encoded,
    EncodedBytes,
    Tokenizer,
)
from dagster_dataops.library.chat.rendering_record import ChatRenderer
from dagster_dataops.library.tokens.special_tokens import name_pattern
from dagster_dataops.records import Record

_CONTENTS: Final = (MESSAGES, TOOLS, "documents", "chat_template_kwargs")
_MARK: Final = "\ufdd6"  # is in no text: Unicode reserves it for use inside of a program


class SpecialContents:
    """Finds the names of special tokens of a tokenizer in the contents of conversations."""

    def __init__(self, tokenizer: Tokenizer, renderer: ChatRenderer) -> None:
        self._tokenizer, self._renderer = tokenizer, renderer
        names = {name: number for name, number in tokenizer.special.items() if name.strip()}
        self._pattern = name_pattern(names) if names else None

    def check(self, contents: Mapping[str, Any]) -> None:
        """Check that no content holds the name of a special token."""
        if self._pattern is not None:
            for key in _CONTENTS:
                self._check(key, contents.get(key))

    def _check(self, place: str, value: Any) -> None:
        if type(value) is str:
            if self._pattern is not None and (match := self._pattern.search(value)) is not None:
                msg = f"{place} holds the special token {match[0]!r}, which would become one; "
                raise UnfitRecordError(
                    f"{msg}remove it, or set special_in_content='text' to encode it as a text"
                )
        elif type(value) is dict:
            for key, item in value.items():
                self._check(place, key)
                self._check(f"{place}.{key}", item)
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                self._check(f"{place}[{number}]", item)

    def encode(self, conversation: Record, text: str) -> Encoded | EncodedBytes:
        """Return the tokens of a text in which special tokens of contents are plain text.

        What stands between two special tokens of the template is encoded by itself.
        """
        starts = self._starts(conversation, text)
        if not starts:
            return self._tokenizer.encode_with_offsets(text)
        pieces = list(self._pieces(text, starts))
        apart = [number for piece, _ in pieces for number in self._tokenizer.encode(piece)]
        if apart != self._tokenizer.encode(text):
            msg = "the tokenizer encodes parts of a text otherwise than the whole, so that special "
            raise UnfitRecordError(f"{msg}tokens in contents cannot be plain text; remove them")
        return _joined(pieces, self._tokenizer)

    def _starts(self, conversation: Record, text: str) -> set[int]:
        """Return where special tokens of contents begin in the text of a conversation."""
        contents = {key: self._renderer.content(conversation, key) for key in _CONTENTS}
        marked = {key: self._marked(value) for key, value in contents.items() if value is not None}
        if marked == contents:
            return set()
        parts = self._renderer.render(conversation | marked).text.split(_MARK)
        if "".join(parts) != text:
            msg = "the template changes contents with special tokens, so that their place is not "
            raise UnfitRecordError(f"{msg}known; remove them")
        return {reached - 1 for reached in accumulate(map(len, parts[:-1]))}

    def _marked(self, value: Any) -> Any:
        """Return a JSON value with a mark behind the first character of each special token."""
        if isinstance(value, str):
            if self._pattern is None:
                return value
            return self._pattern.sub(lambda match: f"{match[0][0]}{_MARK}{match[0][1:]}", value)
        if isinstance(value, dict):
            return {self._marked(key): self._marked(item) for key, item in value.items()}
        return [self._marked(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _pieces(self, text: str, starts: set[int]) -> Iterator[tuple[str, bool]]:
        """Yield the pieces of a text, and whether special tokens in a piece are plain text."""
        begin = behind = 0  # of what is not yielded yet, and of the last token of the template
        plain = False
        matches = [] if self._pattern is None else self._pattern.finditer(text)
        for match in matches:
            if not starts.isdisjoint(range(*match.span())):
                plain = True
                continue
            if plain:
                yield text[begin:behind], False
                yield text[behind : match.start()], True
                begin, plain = match.start(), False
            behind = match.end()
        if plain:
            yield text[begin:behind], False
            begin = behind
        yield text[begin:], plain


def _joined(pieces: Iterable[tuple[str, bool]], tokenizer: Tokenizer) -> Encoded:
    """Return the tokens of pieces, as `SpecialContents._pieces` yields them, with their places."""
    ids: list[int] = []
    places: list[tuple[int, int]] = []
    reached = 0
    for piece, plain in pieces:
        encode = tokenizer.encode_plain if plain else tokenizer.encode_with_offsets
        encoded = encode(piece)
        ids += encoded.ids
        places += [(reached + start, reached + end) for start, end in encoded.places()]
        reached += len(piece)
    return Encoded(ids, places.__getitem__)
