"""Recognize the coding agent of a session file by its lines, and choose its reader."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dagster_dataops.readers.agent_traces import claude_code, codex, gemini_cli
from dagster_dataops.readers.agent_traces.claude_code import claude_code_sessions
from dagster_dataops.readers.agent_traces.codex import codex_sessions
from dagster_dataops.readers.agent_traces.gemini_cli import gemini_cli_sessions
from dagster_dataops.readers.agent_traces.message_sessions import (
    DROID,
    HERMES,
    PI,
    droid_sessions,
    hermes_sessions,
    pi_sessions,
)
from dagster_dataops.readers.agent_traces.sessions import Line, Session

HARNESSES: Final[Mapping[str, Callable[..., Iterator[Session]]]] = {
    claude_code.HARNESS: claude_code_sessions,
    codex.HARNESS: codex_sessions,
    PI: pi_sessions,
    DROID: droid_sessions,
    HERMES: hermes_sessions,
    gemini_cli.HARNESS: gemini_cli_sessions,
}


def harness_of(lines: list[Line]) -> str | None:
    """Return the name of the agent that wrote lines; ``None`` if no line is of a known form."""
    return next((name for name in map(_harness_of_line, lines) if name is not None), None)


def _harness_of_line(line: Mapping[str, Any]) -> str | None:
    kind, message = str(line.get("type")), line.get("message")
    has_message = isinstance(message, dict) and "role" in message
    signs = {
        gemini_cli.HARNESS: {"sessionId", "projectHash"} <= line.keys(),
        HERMES: isinstance(line.get("messages"), list) and {"id", "source"} <= line.keys(),
        codex.HARNESS: (isinstance(line.get("payload"), dict) and "type" in line)
        or (kind == "message" and "role" in line and isinstance(line.get("content"), list)),
        DROID: kind == "session_start" and {"cwd", "version"} <= line.keys(),
        claude_code.HARNESS: (kind in {"user", "assistant"} and has_message)
        or (kind == "summary" and "leafUuid" in line),
        PI: (kind == "session" and "id" in line) or (kind == "message" and has_message),
    }
    return next((name for name, matches in signs.items() if matches), None)


def is_trace_line(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a line of a session file."""
    return _harness_of_line(record) is not None
