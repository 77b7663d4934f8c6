"""`TurnFinder`: finds the parts of a rendered conversation that the assistant wrote."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import ASSISTANT, MESSAGES
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.chat.rendering_jinja import Part, Rendered
from dagster_dataops.library.chat.rendering_record import ChatRenderer

_OTHERS: Final = (
    "use a template with {% generation %}, split_turns=True, mask='final' for the last turn alone, "
    "or mask='markers' with start_marker and end_marker"
)
_SHOWN: Final = ("tools", "documents")  # besides messages
_PROBE: Final = [
    {"role": role, "content": content}
    for role, content in (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))
]


class TurnFinder:
    """Finds the parts of rendered conversations that the assistant wrote.

    Args:
        renderer: Renders conversations.
        method: ``generation`` by the tag of the template, ``prefix`` by the texts of shorter
            conversations, ``final`` for the last turn alone, ``markers`` between two texts,
            ``whole`` for the text without parts, or ``auto`` for the first of the first two that
            fits the template.
        start_marker: The text before each turn, for ``markers``.
        end_marker: The end of each turn, for ``markers``.

    Attributes:
        method: The method that is used.
    """

    def __init__(
        self, renderer: ChatRenderer, method: str, start_marker: str | None, end_marker: str | None
    ) -> None:
        self._renderer = renderer
        if (method == "markers") != bool(start_marker and end_marker):
            msg = "mask='markers' needs start_marker and end_marker, and only it does"
            raise DefinitionError(msg)
        if method == "generation" and not renderer.marked:
            msg = (
                f"the template has no {{% generation %}}, which mask='generation' reads; {_OTHERS}"
            )
            raise DefinitionError(msg)
        self._markers = start_marker or "", end_marker or ""
        self.method = self._fitting() if method == "auto" else method
        self._find: Callable[[dict[str, Any]], Rendered] = getattr(self, f"_by_{self.method}")

    def find(self, record: dict[str, Any]) -> Rendered:
        """Return the text of a conversation, with the parts that the assistant wrote."""
        return self._find(record)

    def _fitting(self) -> str:
        """Return the method that fits the template."""
        if self._renderer.marked:
            return "generation"
        try:
            self._by_prefix({MESSAGES: _PROBE})
        except UnfitRecordError as error:
            if not self._takes_parts():
                msg = f"the template does not tell what the assistant writes: {error}"
                raise DefinitionError(msg if _OTHERS in msg else f"{msg}; {_OTHERS}") from None
        return "prefix"

    def _takes_parts(self) -> bool:
        """Return whether the method ``prefix`` fits, with each content as a list of parts."""
        parts = [
            {**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in _PROBE
        ]
        try:
            self._by_prefix({MESSAGES: parts})
        except UnfitRecordError:
            return False
        return True

    def _by_whole(self, record: dict[str, Any]) -> Rendered:
        return Rendered(self._renderer.render(record).text, [])

    def _by_generation(self, record: dict[str, Any]) -> Rendered:
        rendered = self._renderer.render(record)
        return Rendered(rendered.text, _numbered(rendered.parts, record))

    def _by_markers(self, record: dict[str, Any]) -> Rendered:
        start_marker, end_marker = self._markers
        places = {f"{MESSAGES}[{at}]": message for at, message in enumerate(_messages(record))}
        for place, value in {**places, **{key: record.get(key) for key in _SHOWN}}.items():
            if any(marker in text for text in _texts(value) for marker in self._markers):
                raise UnfitRecordError(f"{place} holds a marker of mask='markers'")
        text = self._renderer.render(record).text
        parts: list[Part] = []
        at = 0
        while (marker := text.find(start_marker, at)) >= 0:
            start = marker + len(start_marker)
            end = text.find(end_marker, start)
            at = len(text) if end < 0 else end + len(end_marker)
            parts.append(Part(start, at))
        return Rendered(text, _numbered(parts, record))

    def _by_final(self, record: dict[str, Any]) -> Rendered:
        messages = _messages(record)
        last = len(messages) - 1
        if messages[last]["role"] != ASSISTANT:
            raise UnfitRecordError(f"{MESSAGES}[{last}] is not of the assistant; nothing to train")
        whole = self._renderer.render(record).text
        return Rendered(whole, [Part(self._start(record, last, whole), len(whole), last)])

    def _by_prefix(self, record: dict[str, Any]) -> Rendered:
        whole = self._renderer.render(record).text
        parts = [self._turn(record, number, whole) for number in assistant_turns(record)]
        for before, after in pairwise(parts):
            if after.start < before.end:
                raise _unsound(after.message, "begins before the turn before it ends")
        return Rendered(whole, parts)

    def _turn(self, record: dict[str, Any], number: int, whole: str) -> Part:
        """Return the part of one turn, by the texts of the conversation before and up to it."""
        last = number == len(_messages(record)) - 1
        until = whole if last else self._renderer.render(_cut(record, number + 1)).text
        end = self._end(until, whole)
        if end is None:
            raise _unsound(number, "has another text once later turns follow")
        start = self._start(record, number, until)
        if start >= end:
            raise _unsound(number, "has no text of its own")
        return Part(start, end, number)

    def _start(self, record: dict[str, Any], number: int, until: str) -> int:
        """Return where a turn begins in a text that ends with it.

        The generation prompt may differ from the turn, as ``<think>`` does that the turn has not.
        The turns before must be the same.
        """
        prompt = self._prompt(record, number)
        start = _shared(prompt, until)
        if start < len(prompt) and start < len(self._renderer.render(_cut(record, number)).text):
            raise _unsound(number, "changes the text of the turns before it")
        return start

    def _end(self, until: str, whole: str) -> int | None:
        """Return where a shorter text ends in the whole, without its end of text.

        ``None`` if the whole does not begin with it.
        """
        for ending in ("", *sorted(self._renderer.endings, key=len)):
            begin = until.removesuffix(ending)
            if whole.startswith(begin):
                return len(begin)
        return None

    def _prompt(self, record: dict[str, Any], number: int) -> str:
        """Return the text of the messages before a turn, with the generation prompt."""
        if number == 0:
            raise UnfitRecordError(f"{MESSAGES}[0] is of the assistant: no prompt is before it")
        return self._renderer.render(_cut(record, number), add_generation_prompt=True).text


def assistant_turns(record: dict[str, Any]) -> Iterator[int]:
    """Yield the index of each message of the assistant."""
    for number, message in enumerate(_messages(record)):
        if message["role"] == ASSISTANT:
            yield number


def _numbered(parts: list[Part], record: dict[str, Any]) -> list[Part]:
    """Return the parts with the index of their message.

    If no part has one, the parts are those of the turns of the assistant in order, if there are as
    many. A part without index that begins where another ends, such as the end of text, is of the
    same message.
    """
    if all(part.message is None for part in parts):
        numbers: list[int] = list(assistant_turns(record))
        known = len(numbers) == len(parts)
        return (
            [part._replace(message=numbers[i]) for i, part in enumerate(parts)] if known else parts
        )
    numbered: list[Part] = []
    for part in parts:
        follows = part.message is None and numbered and numbered[-1].end == part.start
        numbered.append(part._replace(message=numbered[-1].message) if follows else part)
    return numbered


def _messages(record: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = record[MESSAGES]
    return messages


def _cut(record: dict[str, Any], count: int) -> dict[str, Any]:
    return record | {MESSAGES: _messages(record)[:count]}


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _shared(first: str, second: str) -> int:
    """Return the length of the longest common prefix of two texts."""
    sizes = range(1, min(len(first), len(second)) + 1)
    return bisect_left(sizes, 1, key=lambda size: first[:size] != second[:size])


def _unsound(number: int | None, what: str) -> UnfitRecordError:
    return UnfitRecordError(f"{MESSAGES}[{number}] {what}, so its mask would be wrong; {_OTHERS}")
