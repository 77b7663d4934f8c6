"""Choose the parts of a rendered conversation that are trained, and find its texts in it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dagster_dataops.datasets.chats.chat_record import ASSISTANT, MESSAGES, REASONING_NAMES, Message
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.analysis.tokenizers.tokenization import Encoded, EncodedBytes
from dagster_dataops.library.chat.rendering_jinja import Part, Rendered
from dagster_dataops.library.chat.rendering_record import ChatRenderer
from dagster_dataops.records import Record

Span: TypeAlias = tuple[int, int]
_Kind: TypeAlias = Literal["reasoning", "text", "call"]

# Characters that are in no text: Unicode reserves them for use inside of a program.
_OPENED: Final[dict[_Kind, str]] = {"reasoning": "\ufdd2", "text": "\ufdd3", "call": "\ufdd4"}
_CLOSED: Final = "\ufdd5"
_KINDS: Final = {mark: kind for kind, mark in _OPENED.items()}
_MARK: Final = re.compile("([\ufdd2-\ufdd5])")
_THINK: Final = re.compile("(</?think>)")
_END_OF_THINK: Final = "</think>"


class _Place(NamedTuple):
    """The place of a text of the assistant in the rendered text.

    Attributes:
        kind: The kind of the text. Of a call, the text is the name of the function.
        start: Its first character.
        end: The character behind its last.
    """

    kind: _Kind
    start: int
    end: int


class TrainedPlaces:
    """Chooses the parts of a text that are trained.

    Args:
        renderer: Renders the conversations.
        train: ``assistant``, ``last`` or ``all``.
        reasoning: Whether reasoning is trained.
        calls: Whether calls of tools are trained.
    """

    def __init__(self, renderer: ChatRenderer, train: str, *, reasoning: bool, calls: bool) -> None:
        self._renderer, self._train = renderer, train
        self._reasoning, self._calls = reasoning, calls

    def spans(self, turns: Rendered, conversation: Record) -> list[Span]:
        """Return the spans that are trained, as start and end in characters, in order."""
        if self._train == "all":
            return [(0, len(turns.text))]
        messages: Any = conversation[MESSAGES]
        parts = self._parts(turns, messages)
        if self._reasoning and self._calls:
            return [(part.start, part.end) for part in parts]
        places = _places(self._renderer, conversation, turns.text)
        return [span for part in parts for span in self._without(part, places)]

    def _parts(self, turns: Rendered, messages: list[Message]) -> list[Part]:
        """Return the parts of the turns that are trained."""
        plain = all(message.get("weight") != 0 for message in messages)
        if plain and self._train == "assistant":
            return turns.parts
        if any(part.message is None for part in turns.parts):
            msg = "the template does not tell which turn of the assistant is which, so weights"
            raise UnfitRecordError(f"{msg} and train='last' cannot be used")
        trained = [part for part in turns.parts if messages[part.message or 0].get("weight") != 0]
        last = trained[-1].message if trained else None
        return [part for part in trained if self._train != "last" or part.message == last]

    def _without(self, part: Part, places: Sequence[_Place]) -> Iterator[Span]:
        """Yield the spans of a part that are trained: all but its reasoning or calls."""
        start = part.start
        inside = [place for place in places if part.start <= place.start and place.end <= part.end]
        left_out = (
            [] if self._reasoning else [place[1:] for place in inside if place.kind == "reasoning"]
        )
        if not self._calls:
            left_out += _calls(part, inside)
        for first, behind in sorted(left_out):
            if first > start:
                yield start, first
            start = max(start, behind)
        if start < part.end:
            yield start, part.end


def _calls(part: Part, places: Sequence[_Place]) -> Iterator[Span]:
    """Yield the spans of calls in a part: from the text before them to the text behind them."""
    start, called = part.start, False
    for place in places:
        if place.kind == "call":
            called = True
            continue
        if called:
            yield start, place.start
        start, called = place.end, False
    if called:
        yield start, part.end


def _places(renderer: ChatRenderer, conversation: Record, text: str) -> list[_Place]:
    """Return where reasoning, contents and calls of the assistant stand in a text, in order.

    The conversation is rendered again with marks in its texts, which distinguish equal texts.
    """
    messages: Any = conversation[MESSAGES]
    marked = [_marked(message) if message["role"] == ASSISTANT else message for message in messages]
    rendered = renderer.render(conversation | {MESSAGES: marked}).text
    places, plain = _read(rendered)
    if plain != text:
        msg = "the template changes texts of the assistant, so that their place is not known; "
        raise UnfitRecordError(f"{msg}leave out train_reasoning=False and train_calls=False")
    return places


def _read(marked: str) -> tuple[list[_Place], str]:
    """Return the marked places of a text, and the text without marks; empty if a mark is gone."""
    places: list[_Place] = []
    opened: tuple[_Kind, int] | None = None
    plain = ""
    for piece in _MARK.split(marked):
        if _MARK.fullmatch(piece) is None:
            plain += piece
        elif (piece == _CLOSED) != (opened is not None):
            return [], ""
        elif opened is None:
            opened = _KINDS[piece], len(plain)
        else:
            places.append(_Place(*opened, len(plain)))
            opened = None
    return ([], "") if opened else (places, plain)


def _marked(message: Message) -> Message:
    """Return a message of the assistant with marks around its texts, and the names of calls."""
    changed = dict(message)
    for name in REASONING_NAMES:
        if isinstance(text := message.get(name), str):
            changed[name] = _around(text, "reasoning")
    content = message.get("content")
    if isinstance(content, str):
        changed["content"] = _marked_content(content)
    elif isinstance(content, list):
        changed["content"] = [_marked_part(part) for part in content]
    if calls := message.get("tool_calls"):
        changed["tool_calls"] = [_marked_call(call) for call in calls]
    return changed


def _marked_content(text: str) -> str:
    """Return a content with marks; what is before its first ``</think>`` is reasoning.

    Templates cut there, so that no mark goes over ``<think>`` or ``</think>``.
    """
    pieces = _THINK.split(text)
    end = pieces.index(_END_OF_THINK) if _END_OF_THINK in pieces else 0
    for at in range(0, len(pieces), 2):
        pieces[at] = _around(pieces[at], "reasoning" if at == end - 1 else "text")
    return "".join(pieces)


def _marked_part(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(text := part.get("text"), str):
        return {**part, "text": _around(text, "text")}
    return part


def _marked_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "name": _around(function["name"], "call")}}


def _around(text: str, kind: _Kind) -> str:
    """Return a text with marks, within the white space at its ends, which templates strip."""
    inner = text.strip()
    if not inner:
        return text
    before, after = text.split(inner, 1)
    return f"{before}{_OPENED[kind]}{inner}{_CLOSED}{after}"


def token_spans(
    spans: list[Span], encoded: Encoded | EncodedBytes, most: int | None
) -> list[list[int]]:
    """Return the spans of the tokens with a character in a span, as start and end in tokens.

    Args:
        spans: Spans of characters, in order.
        encoded: The tokens.
        most: How many of the tokens are kept; ``None`` for all.
    """
    kept: list[list[int]] = []
    for start, end in spans:
        if start == end:
            continue
        first, behind = encoded.covering(start, end)
        if kept and kept[-1][1] >= first:
            first = kept.pop()[0]
        kept.append([first, behind])
    if most is not None:
        kept = [[first, min(behind, most)] for first, behind in kept if first < most]
    return [span for span in kept if span[0] < span[1]]
