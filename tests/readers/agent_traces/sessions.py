"""Lines of session files, as the agents write them."""

import json
from pathlib import Path
from typing import Any

from dagster_dataops.readers import read_agent_traces


def read(path: Path, *lines: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """Write a session file, and return its records."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return list(read_agent_traces(str(path), **options).and_return())


class Claude:
    """Makes lines of Claude Code; each stands behind the one before unless it says otherwise."""

    def __init__(self) -> None:
        self._number = 0
        self._last: str | None = None

    def line(self, kind: str, **more: Any) -> dict[str, Any]:
        self._number += 1
        name = f"u{self._number}"
        made = {
            "type": kind,
            "uuid": name,
            "parentUuid": self._last,
            "sessionId": "s-1",
            "timestamp": f"2026-01-02T03:04:{self._number:02}.000Z",
            "cwd": "/w",
            "version": "2.1.0",
            **more,
        }
        self._last = name
        return made

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
        return self.line("user", message={"role": "user", "content": content}, **more)

    def result(self, name: str, content: Any, **more: Any) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": name, "content": content}
        return self.user([block], **more)

    def said(self, message: str, block: dict[str, Any], **more: Any) -> dict[str, Any]:
        body = {"id": message, "role": "assistant", "model": "m-1", "content": [block]}
        return self.line("assistant", message=body, **more)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool_use(name: str, tool: str = "Bash", /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}


def call(name: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Return a call as a chat record has it."""
    function = {"name": tool, "arguments": arguments}
    return {"id": name, "type": "function", "function": function}


def item(kind: str, **more: Any) -> dict[str, Any]:
    """Return an item of a response of Codex."""
    payload = {"type": kind, **more}
    return {"timestamp": "2026-01-02T03:04:05.000Z", "type": "response_item", "payload": payload}
