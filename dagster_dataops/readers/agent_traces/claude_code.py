"""Sessions of Claude Code: lines with messages of Anthropic's form, in a tree.

One message of the assistant is spread over several lines with the same ``message.id``, one for each
block. Lines with ``isSidechain`` are messages of another agent. There is no public specification.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.datasets.chats.anthropic_blocks import messages_of
from dagster_dataops.datasets.chats.json_fields import dict_entry, text_entry
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.readers.agent_traces.sessions import Line, Session, branch

HARNESS: Final = "claude_code"
_SPOKEN: Final = ("user", "assistant")
_PARENTS: Final = ("parentUuid", "logicalParentUuid")  # the second leads past a compaction


def claude_code_sessions(lines: list[Line], *, sidechains: bool) -> Iterator[Session]:
    """Yield the main session of a file.

    Sessions of other agents are yielded behind it with ``sidechains``, else counted.
    """
    main = [line for line in lines if not line.get("isSidechain")]
    side = [line for line in lines if line.get("isSidechain")]
    named = {line["uuid"]: line for line in side if isinstance(line.get("uuid"), str)}
    others: dict[str, list[Line]] = defaultdict(list)
    for line in side:
        others[_agent(line, named)].append(line)
    session = _session(main)
    if not sidechains:
        session.left_out["sidechain"] += len(side)
    yield session
    if sidechains:
        for agent, spoken in others.items():
            other = _session(spoken)
            other.tell(sidechain=agent)
            yield other


def _agent(line: Line, named: dict[str, Line]) -> str:
    """Return the id of the agent of a line: its own, or that of the first line above it.

    ``named`` has the lines of other agents by their ids.
    """
    if isinstance(line.get("agentId"), str):
        return str(line["agentId"])
    seen: set[str] = set()
    while str(line.get("uuid")) not in seen:
        seen.add(str(line.get("uuid")))
        before = named.get(str(line.get("parentUuid")))
        if before is None:
            break
        line = before
    return str(line.get("uuid"))


def _session(lines: list[Line]) -> Session:
    session = Session()
    session.tell(harness=HARNESS)
    kept: list[Line] = []
    for line in lines:
        _tell(session, line)
        if reason := _reason_to_leave_out(line):
            session.left_out[reason] += 1
        else:
            kept.append(line)
    losses = Losses("a chat record", "drop")
    on_branch = _of_branch(kept, lines)
    session.left_out["abandoned"] += len(kept) - len(on_branch)
    for place, turn in _joined(on_branch):
        session.messages += messages_of(turn, place, losses)
    session.left_out += losses.counts
    return session


def _tell(session: Session, line: Line) -> None:
    message = line.get("message")
    session.tell(
        session_id=line.get("sessionId"),
        cwd=line.get("cwd"),
        started_at=line.get("timestamp"),
        cli_version=line.get("version"),
    )
    if isinstance(message, dict) and line.get("type") == "assistant":
        session.tell(model=message.get("model"))


def _reason_to_leave_out(line: Line) -> str | None:
    if line.get("type") not in _SPOKEN or not isinstance(line.get("message"), dict):
        return str(line.get("type"))
    if line.get("isMeta"):
        return "meta"
    return "api_error" if line.get("isApiErrorMessage") else None


def _of_branch(kept: list[Line], lines: list[Line]) -> list[Line]:
    """Return the lines of the last branch, with the other lines of its messages and results."""
    names = branch(_until_last(kept, lines), "uuid", _PARENTS)
    if names is None:
        return kept
    messages = {_message_id(line) for line in kept if str(line.get("uuid")) in names} - {None}
    with_calls = [
        line for line in kept if str(line.get("uuid")) in names or _message_id(line) in messages
    ]
    calls = {block["id"] for line in with_calls for block in _blocks(line, "tool_use", "id")}
    chosen = {id(line) for line in with_calls}
    return [
        line
        for line in kept
        if id(line) in chosen
        or any(
            block["tool_use_id"] in calls for block in _blocks(line, "tool_result", "tool_use_id")
        )
    ]


def _until_last(kept: list[Line], lines: list[Line]) -> list[Line]:
    """Return the lines up to the last one that is kept: lines behind it may be of any branch."""
    if not kept:
        return []
    last = max(number for number, line in enumerate(lines) if line is kept[-1])
    return lines[: last + 1]


def _message_id(line: Line) -> str | None:
    name = line["message"].get("id")
    return name if isinstance(name, str) and line["type"] == "assistant" else None


def _blocks(line: Line, kind: str, key: str) -> list[dict[str, Any]]:
    content = line["message"].get("content")
    blocks = content if isinstance(content, list) else []
    return [
        block
        for block in blocks
        if isinstance(block, dict) and block.get("type") == kind and isinstance(block.get(key), str)
    ]


def _joined(lines: list[Line]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place, role and content of the messages; lines of one message stand at the first."""
    turns: dict[object, dict[str, Any]] = {}
    for number, line in enumerate(lines):
        message = dict_entry(line, "message", "")
        name = _message_id(line) or number
        if name not in turns:
            turns[name] = {"role": line["type"], "content": message.get("content")}
            continue
        turns[name]["content"] = [*_as_list(turns[name]), *_as_list(message)]
    yield from ((f"message {number}", turn) for number, turn in enumerate(turns.values()))


def _as_list(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": text_entry(message, "content", "")}]
