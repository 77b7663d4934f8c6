"""Ids of calls, and which result answers which call."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from dagster_dataops.errors import UnfitRecordError


def link_answers(
    messages: list[dict[str, Any]], place: str, *, makes_ids: bool, keeps_unanswered: bool
) -> None:
    """Check the ids of calls and results; write those that are missing.

    Args:
        messages: The messages of a record, which are changed.
        place: Their path, for errors.
        makes_ids: Whether calls without an id get one: ``call_1``, ``call_2`` through the record.
        keeps_unanswered: Whether calls before a later turn may be without an answer.
    """
    if not any("tool_calls" in message or "tool_call_id" in message for message in messages):
        return
    _check_ids(messages, place)
    if makes_ids:
        make_ids(messages)
    open_calls: list[tuple[str, dict[str, Any]]] = []
    called = False
    for number, message in enumerate(messages):
        at = f"{place}[{number}]"
        if message["role"] == "tool":
            if called or "tool_call_id" in message:
                _link(message, at, open_calls)
            continue  # without an id, the call may be part of the assistant's text
        if open_calls and not keeps_unanswered:
            path, call = open_calls[0]
            name = call["function"]["name"]
            msg = f"{path} calls {name!r} and has no answer before {at}"
            raise UnfitRecordError(f"{msg}; add a message of the role 'tool', or drop the record")
        calls = message.get("tool_calls") or []
        called = bool(calls)
        open_calls = [(f"{at}.tool_calls[{i}]", call) for i, call in enumerate(calls)]


def _check_ids(messages: list[dict[str, Any]], place: str) -> None:
    known: set[str] = set()
    for number, message in enumerate(messages):
        for position, call in enumerate(message.get("tool_calls") or []):
            name = call.get("id")
            if name in known:
                at = f"{place}[{number}].tool_calls[{position}].id"
                raise UnfitRecordError(
                    f"{at} is {name!r}, as that of a call before; ids are unique"
                )
            if name is not None:
                known.add(name)


def make_ids(messages: list[dict[str, Any]]) -> None:
    """Give calls without an id one: ``call_1``, ``call_2`` through the record."""
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    names = new_ids({call["id"] for call in calls if "id" in call})
    for call in calls:
        if "id" not in call:
            rest = dict(call)
            call.clear()
            call.update(id=next(names), **rest)


def new_ids(used: set[str]) -> Iterator[str]:
    """Yield the ids ``call_1``, ``call_2`` and so on, without those that are used."""
    return (name for number in count(1) if (name := f"call_{number}") not in used)


def _link(result: dict[str, Any], at: str, open_calls: list[tuple[str, dict[str, Any]]]) -> None:
    """Take the call of a result from those without an answer, and write its id."""
    wanted = result.get("tool_call_id")
    index = next(
        (i for i, (_, call) in enumerate(open_calls) if wanted in {None, call.get("id")}), None
    )
    if index is None:
        known = ", ".join(str(call.get("id")) for _, call in open_calls) or "none"
        asked = "has no tool_call_id" if wanted is None else f"answers the call {wanted!r}"
        msg = f"{at} {asked}; the calls before it without an answer: {known}"
        raise UnfitRecordError(msg)
    path, call = open_calls.pop(index)
    name, called = result.get("name"), call["function"]["name"]
    if wanted is None and name is not None and name != called:
        msg = f"{at}.name is {name!r}, but {path}, the first without an answer, calls {called!r}"
        raise UnfitRecordError(f"{msg}; give tool_call_id")
    if wanted is None and "id" in call:
        result["tool_call_id"] = call["id"]
