"""The form Alpaca: ``instruction``, ``input``, ``output``, ``system`` and ``history``."""

from typing import Any, Final, cast

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    DEVELOPER,
    MESSAGES,
    SYSTEM,
    TOOL,
    USER,
    Message,
)
from dagster_dataops.datasets.chats.json_fields import text_entry
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.turns import TWO_PROMPTS, without
from dagster_dataops.records import Record

_GAP: Final = "\n\n"  # between the instruction and the input


def read_alpaca(record: Record, losses: Losses) -> tuple[set[str], dict[str, Any]]:
    """Return the keys of a conversation, and what they say as a chat record."""
    del losses  # a chat record holds all of it
    instruction = text_entry(record, "instruction", "")
    messages = prompt_messages(record)
    keys = {"instruction"}
    for user, assistant in _history(record):
        messages += [_message(USER, user), _message(ASSISTANT, assistant)]
        keys.add("history")
    messages.append(_message(USER, _joined(instruction, optional_text(record, "input"))))
    if record.get("output") is not None:
        messages.append(_message(ASSISTANT, text_entry(record, "output", "")))
        keys.add("output")
    return keys, {MESSAGES: messages}


def read_pair(
    record: Record, losses: Losses, keys: tuple[str, str]
) -> tuple[set[str], dict[str, Any]]:
    """Return the keys of a question and its answer, and what they say as a chat record."""
    del losses
    user, assistant = (text_entry(record, key, "") for key in keys)
    turns = [_message(USER, user), _message(ASSISTANT, assistant)]
    return {*keys}, {MESSAGES: [*prompt_messages(record), *turns]}


def write_alpaca(record: dict[str, Any], losses: Losses) -> Record:
    """Return a chat record in normal form as a record with ``instruction`` and ``output``."""
    rest: dict[str, Any] = without(record, (MESSAGES,))
    for key in ("instruction", "output"):
        check_free(rest, key)
    messages = _texts_alone(record[MESSAGES], losses)
    if messages and messages[0]["role"] == SYSTEM:
        rest["system"] = _system_column(rest, messages.pop(0)["content"])
    elif optional_text(rest, "system"):
        raise UnfitRecordError(TWO_PROMPTS)
    texts = _in_turns(messages)
    output = [texts.pop()] if len(texts) % 2 == 0 else []
    result: dict[str, Any] = {"instruction": _without_input(texts.pop(), rest)}
    if texts:
        if rest.get("history"):
            raise UnfitRecordError("the record already has the key 'history'")
        result["history"] = [list(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
    if output:
        result["output"] = output[0]
    return rest | result


def _texts_alone(messages: list[Message], losses: Losses) -> list[Message]:
    """Return the messages that have a text, with role and text alone."""
    texts = []
    for position, message in enumerate(messages):
        place = f"{MESSAGES}[{position}]"
        if message["role"] == TOOL:
            losses.lose(place, "turn_of_tool")
            continue
        if message["role"] == DEVELOPER:
            losses.lose(place, DEVELOPER)
        if "from" in message:
            losses.note("name_of_turn")  # another word for the same role
        losses.lose_others(message, {"role", "content", "from"}, place)
        role = SYSTEM if message["role"] == DEVELOPER else message["role"]
        if message["content"] is not None:
            texts.append(_message(role, _text(message, place, losses)))
    return texts


def _text(message: Message, place: str, losses: Losses) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    losses.lose(f"{place}.content", "parts")
    texts = [part["text"] for part in content if part["type"] == "text"]
    losses.check_rest(texts, content, f"{place}.content")
    return "".join(texts)


def _in_turns(messages: list[Message]) -> list[str]:
    """Return the texts of user and assistant, in turns."""
    if not messages:
        raise UnfitRecordError(f"{MESSAGES} has no turn of the user")
    for position, message in enumerate(messages):
        expected = (USER, ASSISTANT)[position % 2]
        if message["role"] != expected:
            msg = f"turn {position} of the texts is one of {message['role']!r}"
            raise UnfitRecordError(f"{msg}, but Alpaca needs one of {expected!r}")
    return [message["content"] for message in messages]


def check_free(record: Record, key: str) -> None:
    """Check that a key is free, or null."""
    if record.get(key) is not None:
        raise UnfitRecordError(f"the record already has the key {key!r}")


def _system_column(rest: Record, content: str) -> str:
    if optional_text(rest, "system") not in {"", content}:
        raise UnfitRecordError(TWO_PROMPTS)
    if not content:
        raise UnfitRecordError("the system prompt is empty; remove that message")
    return content


def _without_input(content: str, rest: Record) -> str:
    """Return the instruction of a user's turn that ends with the column ``input``."""
    added = optional_text(rest, "input")
    if content == added:
        return ""
    instruction = content.removesuffix(_GAP + added)
    if added and instruction not in {"", content}:
        return instruction
    if added:
        raise UnfitRecordError("the key 'input' is not the end of the last turn of the user")
    return content


def _joined(instruction: str, added: str) -> str:
    return f"{instruction}{_GAP}{added}" if instruction and added else instruction or added


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def prompt_messages(record: Record) -> list[Message]:
    """Return the text of the column ``system`` as a message; no message if it is empty."""
    system = optional_text(record, "system")
    return [_message(SYSTEM, system)] if system else []


def optional_text(record: Record, key: str) -> str:
    """Return the text of a column; empty if there is none."""
    return "" if record.get(key) is None else text_entry(record, key, "")


def _history(record: Record) -> list[list[str]]:
    pairs: Any = record.get("history") or []
    if not isinstance(pairs, list):
        raise UnfitRecordError(f"'history' holds a {type(pairs).__name__}, no list of pairs")
    for pair in pairs:
        if not isinstance(pair, list) or [type(text) for text in pair] != [str, str]:
            raise UnfitRecordError("'history' holds something other than pairs of texts")
    return cast("list[list[str]]", pairs)
