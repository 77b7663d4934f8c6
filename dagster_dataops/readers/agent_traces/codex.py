"""Sessions of Codex: lines of ``type`` and ``payload``; items of responses are the messages."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    BETWEEN_THOUGHTS,
    REASONING,
    SYSTEM,
    TOOL,
)
from dagster_dataops.readers.agent_traces.sessions import Line, Session, block_type, call_of

HARNESS: Final = "codex"
_TWICE: Final = ("event_msg", "turn_context")  # events repeat the items
_TEXTS: Final = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


def codex_sessions(lines: list[Line], *, sidechains: bool) -> Iterator[Session]:
    """Yield the session of a file. Other agents have files of their own."""
    del sidechains
    reading = _Reading()
    for line in lines:
        payload = line.get("payload")
        if not isinstance(payload, dict):
            reading.add_bare(line)
        elif line.get("type") == "session_meta":
            reading.begin(payload)
        elif line.get("type") == "response_item":
            reading.add(payload)
        elif line.get("type") not in _TWICE:
            reading.session.left_out[str(line.get("type"))] += 1
        elif isinstance(payload.get("model"), str):
            reading.session.tell(model=payload["model"])
    yield reading.session


class _Reading:
    """Collects the items of one session; those of the assistant become turns."""

    def __init__(self) -> None:
        self.session = Session()
        self.session.tell(harness=HARNESS)
        self._turn: dict[str, Any] | None = None  # of the assistant, not answered yet

    def begin(self, payload: dict[str, Any]) -> None:
        """Note what the first line says."""
        if "session_id" not in self.session.facts:
            self.session.tell(
                session_id=payload.get("id"),
                cwd=payload.get("cwd"),
                started_at=payload.get("timestamp"),
                cli_version=payload.get("cli_version"),
                model=payload.get("model"),
            )
            prompt = payload.get("base_instructions")
            if isinstance(prompt, dict) and isinstance(prompt.get("text"), str):
                self.session.messages.append({"role": SYSTEM, "content": prompt["text"]})

    def add_bare(self, line: Line) -> None:
        """Add a line of early versions: the first one is about the session, others are items."""
        if "type" in line:
            self.add(line)
        elif "instructions" in line:
            self.begin(line)
        else:
            self.session.left_out[str(line.get("record_type"))] += 1

    def add(self, item: dict[str, Any]) -> None:
        """Add an item of a response."""
        kind = item.get("type")
        add = self._adders.get(kind) if isinstance(kind, str) else None
        if add is None:
            self.session.left_out[str(kind)] += 1
        else:
            add(self, item)

    def _message(self, item: dict[str, Any]) -> None:
        role, content = item.get("role"), self._content(item.get("content"))
        if role == ASSISTANT:
            turn = self._open_turn()
            if turn["content"] is not None or "tool_calls" in turn:
                self._turn = None
                turn = self._open_turn()
            turn["content"] = content
            return
        self._turn = None
        self.session.messages.append({"role": str(role), "content": content})

    def _reasoning(self, item: dict[str, Any]) -> None:
        texts = [*self._texts(item.get("summary")), *self._texts(item.get("content"))]
        if item.get("encrypted_content"):
            self.session.left_out["encrypted_reasoning"] += 1
        if any(texts):
            turn = self._open_turn()
            turn[REASONING] = BETWEEN_THOUGHTS.join(filter(None, [turn.get(REASONING), *texts]))

    def _call(self, item: dict[str, Any]) -> None:
        self._add_call(item, item.get("name"), item.get("arguments"))

    def _custom_call(self, item: dict[str, Any]) -> None:
        arguments = {"input": item["input"]} if "input" in item else item.get("arguments")
        self._add_call(item, item.get("name"), arguments)

    def _shell_call(self, item: dict[str, Any]) -> None:
        self._add_call(item, "local_shell", item.get("action"))

    def _search_call(self, item: dict[str, Any]) -> None:
        self._add_call(item, "web_search", item.get("action"))

    def _add_call(self, item: dict[str, Any], name: object, arguments: object) -> None:
        number = len(self.session.messages)
        calls = self._open_turn().setdefault("tool_calls", [])
        identity = item.get("call_id") or item.get("id") or f"{name}_{number}_{len(calls)}"
        calls.append(call_of(name, identity, arguments))

    def _output(self, item: dict[str, Any]) -> None:
        self._turn = None
        output = item.get("output")
        if isinstance(output, dict) and ("content" in output or "content_items" in output):
            output = output.get("content") or output.get("content_items")  # of early versions
        content = self._content(output)
        result = {"role": TOOL, "tool_call_id": item.get("call_id"), "content": content}
        self.session.messages.append(result)

    def _open_turn(self) -> dict[str, Any]:
        if self._turn is None:
            self._turn = {"role": ASSISTANT, "content": None}
            self.session.messages.append(self._turn)
        return self._turn

    def _content(self, content: object) -> str | list[dict[str, Any]]:
        """Return a text, or parts if there are images."""
        if not isinstance(content, list):
            return self.session.text_of(content)
        parts: list[dict[str, Any]] = []
        for block in content:
            kind = block_type(block)
            has_text = isinstance(block, dict) and isinstance(block.get("text"), str)
            if has_text and (kind is None or kind in _TEXTS):
                parts.append({"type": "text", "text": block["text"]})
            elif kind == "input_image" and isinstance(block.get("image_url"), str):
                parts.append({"type": "image_url", "image_url": {"url": block["image_url"]}})
            else:
                self.session.left_out[str(kind)] += 1
        return parts

    def _texts(self, content: object) -> list[str]:
        """Return the texts of reasoning; other things in it are counted as left out."""
        parts = self._content(content)
        if isinstance(parts, str):
            return [parts]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        self.session.left_out["image_url"] += len(parts) - len(texts)
        return texts

    _adders: ClassVar[Mapping[str, Callable[["_Reading", dict[str, Any]], None]]] = {
        "message": _message,
        "reasoning": _reasoning,
        "function_call": _call,
        "custom_tool_call": _custom_call,
        "local_shell_call": _shell_call,
        "web_search_call": _search_call,
        "function_call_output": _output,
        "custom_tool_call_output": _output,
    }
