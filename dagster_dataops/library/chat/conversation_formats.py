"""The formats of conversations: messages, ShareGPT, Alpaca, and pairs of columns.

Each reader takes a record apart into messages and the other columns; each writer does the reverse.
What the messages cannot tell stays in the record, so that the way back is exact: the Alpaca columns
``input`` and ``system``, the ShareGPT column ``system``, and the ShareGPT name of a role that is
not the usual one, as ``from`` of its message.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, cast

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.turns import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Message,
    checked_messages,
    list_of_dicts,
    text_entry,
)
from dagster_dataops.records import Record

MESSAGES, CONVERSATIONS = "messages", "conversations"
_GAP: Final = "\n\n"  # between the instruction and the input of Alpaca
_TWO_PROMPTS: Final = "the key 'system' and the system prompt of the messages differ; remove one"
_ROLE_OF: Final = {
    "human": USER,
    "user": USER,
    "gpt": ASSISTANT,
    "assistant": ASSISTANT,
    "function_call": ASSISTANT,
    "system": SYSTEM,
    "observation": TOOL,
    "tool": TOOL,
}
_NAME_OF: Final = {USER: "human", ASSISTANT: "gpt", SYSTEM: "system", TOOL: "observation"}
_PAIRS: Final = {
    "prompt_completion": ("prompt", "completion"),
    "prompt_response": ("prompt", "response"),
    "question_answer": ("question", "answer"),
    "query_response": ("query", "response"),
}


def format_of(record: Record) -> str | None:
    """Return the name of the format of a record; ``None`` if it is in none."""
    for name, key in (("messages", MESSAGES), ("sharegpt", CONVERSATIONS)):
        if isinstance(record.get(key), list):
            return name
    if isinstance(record.get("instruction"), str):
        return "alpaca"
    for name, keys in _PAIRS.items():
        if all(isinstance(record.get(key), str) for key in keys):
            return name
    return None


def to_messages(record: Record, form: str | None = None) -> Record:
    """Return a record with its conversation as ``messages``.

    Args:
        record: The record.
        form: The name of its format; by default that of `format_of`.

    Raises:
        UnfitRecordError: It has no conversation in this format, or the turns are out of order.
    """
    form = form or format_of(record)
    if form is None:
        known = f"{MESSAGES}, {CONVERSATIONS}, instruction, or pairs such as question and answer"
        raise UnfitRecordError(f"the record has the keys {', '.join(record)}; expected {known}")
    taken, messages = FORMATS[form](record)
    if form != "messages":
        _check_free(record, MESSAGES)
    rest: dict[str, Any] = {key: value for key, value in record.items() if key not in taken}
    return {**rest, MESSAGES: checked_messages(MESSAGES, messages)}


_Reading: TypeAlias = tuple[set[str], list[Message]]
"""The keys that become messages, and the messages."""


def _read_messages(record: Record) -> _Reading:
    return {MESSAGES}, checked_messages(MESSAGES, record.get(MESSAGES))


def _read_sharegpt(record: Record) -> _Reading:
    messages = []
    for position, turn in enumerate(list_of_dicts(CONVERSATIONS, record.get(CONVERSATIONS))):
        place = f"{CONVERSATIONS}[{position}]"
        name = text_entry(turn, "from", place)
        role = _ROLE_OF.get(name)
        if role is None:
            raise UnfitRecordError(f"{place}.from is {name!r}; use one of {', '.join(_ROLE_OF)}")
        clashing = {"role", "content"} & turn.keys()
        if clashing:
            raise UnfitRecordError(f"{place} has the keys of a message: {sorted(clashing)}")
        message = {"role": role, "content": text_entry(turn, "value", place)}
        message |= {key: value for key, value in turn.items() if key not in {"from", "value"}}
        if name != _NAME_OF[role]:
            message["from"] = name
        messages.append(message)
    system = _optional_text(record, "system")
    return {CONVERSATIONS}, [*_system_messages(system), *messages]


def _read_alpaca(record: Record) -> _Reading:
    instruction = text_entry(record, "instruction", "the record")
    messages = _system_messages(_optional_text(record, "system"))
    taken = {"instruction"}
    for user, assistant in _history(record):
        messages += [_message(USER, user), _message(ASSISTANT, assistant)]
        taken.add("history")
    messages.append(_message(USER, _joined(instruction, _optional_text(record, "input"))))
    if record.get("output") is not None:
        messages.append(_message(ASSISTANT, text_entry(record, "output", "the record")))
        taken.add("output")
    return taken, messages


def _read_pair(record: Record, keys: tuple[str, str]) -> _Reading:
    user, assistant = (text_entry(record, key, "the record") for key in keys)
    messages = _system_messages(_optional_text(record, "system"))
    return {*keys}, [*messages, _message(USER, user), _message(ASSISTANT, assistant)]


FORMATS: Final[dict[str, Callable[[Record], _Reading]]] = {
    "messages": _read_messages,
    "sharegpt": _read_sharegpt,
    "alpaca": _read_alpaca,
    **{name: partial(_read_pair, keys=keys) for name, keys in _PAIRS.items()},
}


def to_sharegpt(record: Record) -> Record:
    """Return a record with ``messages`` as a record with ``conversations``.

    Raises:
        UnfitRecordError: It has none, or a message has a key that ShareGPT uses itself.
    """
    rest, messages = _parted(record, CONVERSATIONS)
    if system := _optional_text(rest, "system"):
        if messages[:1] != _system_messages(system):
            raise UnfitRecordError(_TWO_PROMPTS)
        messages = messages[1:]
    return {**rest, CONVERSATIONS: [_turn(message) for message in messages]}


def _turn(message: Message) -> dict[str, Any]:
    usual = _NAME_OF[message["role"]]
    name = message.get("from", usual)
    if _ROLE_OF.get(name) != message["role"] or ("from" in message and name == usual):
        raise UnfitRecordError(f"a message has the role {message['role']!r} and from={name!r}")
    if "value" in message:
        raise UnfitRecordError("a message has the key 'value', which ShareGPT uses itself")
    others = {
        key: value for key, value in message.items() if key not in {"role", "content", "from"}
    }
    return {"from": name, "value": message["content"], **others}


def to_alpaca(record: Record) -> Record:
    """Return a record with ``messages`` as a record with ``instruction`` and ``output``.

    Raises:
        UnfitRecordError: It has no messages, or Alpaca cannot hold them.
    """
    rest, messages = _parted(record, "instruction", "output")
    if messages and messages[0]["role"] == SYSTEM:
        rest["system"] = _system_column(rest, messages[0]["content"])
    elif _optional_text(rest, "system"):
        raise UnfitRecordError(_TWO_PROMPTS)
    texts = _alpaca_texts(messages)
    output = [texts.pop()] if len(texts) % 2 == 0 else []
    made: dict[str, Any] = {"instruction": _without_input(texts.pop(), rest)}
    if texts:
        if rest.get("history"):
            raise UnfitRecordError("the record already has the key 'history'")
        made["history"] = [list(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
    if output:
        made["output"] = output[0]
    return {**rest, **made}


def _alpaca_texts(messages: list[Message]) -> list[str]:
    """Return the texts of the user and the assistant, in turns.

    Raises:
        UnfitRecordError: There is none, or a message is more than such a text.
    """
    for position, message in enumerate(messages):
        if message["role"] == TOOL or message.keys() > {"role", "content"}:
            found = sorted(message.keys() - {"role", "content"}) or "the role 'tool'"
            raise UnfitRecordError(f"{MESSAGES}[{position}] has {found}; Alpaca has no place")
    texts = [message["content"] for message in messages if message["role"] != SYSTEM]
    if not texts:
        raise UnfitRecordError(f"{MESSAGES} has no turn of the user")
    return texts


def _parted(record: Record, *written: str) -> tuple[Record, list[Message]]:
    """Return the other columns of a record, and its messages.

    Raises:
        UnfitRecordError: It has no messages, or one of the keys that will be written.
    """
    messages = checked_messages(MESSAGES, record.get(MESSAGES))
    rest = {key: value for key, value in record.items() if key != MESSAGES}
    for key in written:
        _check_free(rest, key)
    return rest, messages


def _check_free(record: Record, key: str) -> None:
    if record.get(key) is not None:
        raise UnfitRecordError(f"the record already has the key {key!r}")


def _system_column(rest: Record, content: str) -> str:
    if _optional_text(rest, "system") not in {"", content}:
        raise UnfitRecordError(_TWO_PROMPTS)
    if not content:
        raise UnfitRecordError("the system prompt is empty; remove that message")
    return content


def _without_input(content: str, rest: Record) -> str:
    """Return the instruction of a user's turn that ends with the column ``input``.

    Raises:
        UnfitRecordError: The turn does not end with it.
    """
    added = _optional_text(rest, "input")
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


def _system_messages(system: str) -> list[Message]:
    return [_message(SYSTEM, system)] if system else []


def _optional_text(record: Record, key: str) -> str:
    value = record.get(key)
    return "" if value is None else text_entry(record, key, "the record")


def _history(record: Record) -> list[list[str]]:
    pairs: Any = record.get("history") or []
    if not isinstance(pairs, list):
        raise UnfitRecordError(f"'history' holds a {type(pairs).__name__}, no list of pairs")
    for pair in pairs:
        if not isinstance(pair, list) or [type(one) for one in pair] != [str, str]:
            raise UnfitRecordError("'history' holds something other than pairs of texts")
    return cast("list[list[str]]", pairs)
