"""Contents of messages: a text, null, or a list of parts.

The parts::

    {"type": "text", "text"}
    {"type": "image_url", "image_url": {"url", "detail"?}}
    {"type": "image" | "audio" | "video", ...}      as templates of Hugging Face take them
    {"type": "input_audio", "input_audio": {"data", "format"}}
    {"type": "file", "file": {...}}
    {"type": "refusal", "refusal"}
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.datasets.chats.json_fields import (
    dict_entry,
    kind_of,
    list_of_dicts,
    text_entry,
)
from dagster_dataops.errors import UnfitRecordError

Part: TypeAlias = dict[str, Any]

TEXT: Final = "text"
# The texts that each part needs, inside of the key of its type unless they are in the part itself.
_TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "image_url": ("url",),
    "input_audio": ("data", "format"),
    "file": (),
}
_PLAIN: Final = ("image", "audio", "video")
PART_TYPES: Final = (TEXT, "refusal", *_TEXTS, *_PLAIN)


def checked_content(
    content: object, place: str, *, may_be_null: bool, flatten: bool
) -> str | list[Part] | None:
    """Return a content in normal form.

    Args:
        content: A text, null or a list of parts.
        place: Its path, for errors.
        may_be_null: Whether the message has something else to say.
        flatten: Whether exactly one text part becomes that text.
    """
    if isinstance(content, str):
        return content
    if content is None or content == []:
        if may_be_null:
            return None
        kind = "nothing" if content is None else "no parts"
        msg = f"{place} holds {kind}; only a message of the assistant with tool_calls or"
        raise UnfitRecordError(f"{msg} reasoning_content may have no content")
    if not isinstance(content, list):
        kind = kind_of(content)
        raise UnfitRecordError(f"{place} holds {kind}; it must be a text or a list of parts")
    parts = list_of_dicts(place, content)
    for number, part in enumerate(parts):
        _check_part(part, f"{place}[{number}]")
    if flatten and len(parts) == 1 and parts[0].keys() == {"type", TEXT} and _is_text(parts[0]):
        return str(parts[0][TEXT])
    return parts


def plain_text(content: str | list[Part] | None) -> str | None:
    """Return the text of a content; ``None`` if it is null, or has other parts than text.

    The texts of several parts follow each other without a character between them, as templates
    write them.
    """
    if content is None or isinstance(content, str):
        return content
    if all(map(_is_text, content)):
        return "".join(part[TEXT] for part in content)
    return None


def _is_text(part: Part) -> bool:
    return bool(part["type"] == TEXT)


def _check_part(part: Part, place: str) -> None:
    kind = text_entry(part, "type", place)
    if kind not in PART_TYPES:
        known = ", ".join(PART_TYPES)
        raise UnfitRecordError(f"{place}.type is {kind!r}; use one of {known}")
    if kind in {TEXT, "refusal"}:
        text_entry(part, kind, place)
    elif kind in _TEXTS:
        inner = dict_entry(part, kind, place)
        for key in _TEXTS[kind]:
            text_entry(inner, key, f"{place}.{kind}")
