"""Read the body of a reply as JSON, and say what else it is."""

import json
import math
from typing import Any, Final

import orjson

from dagster_dataops.errors import BadReplyError

_SHOWN: Final = 200  # characters
_PAGES: Final = (b"<!doctype html", b"<html")
_EVENTS: Final = (b"data:", b"event:", b"id:", b":")
_MARK: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n"
_LARGEST: Final = 1 << 63


def json_object(body: bytes, url: str, content_type: str = "") -> dict[str, Any]:
    """Return the JSON object in the body of a reply of ``url``.

    A byte order mark and blank lines may come before it. Numbers that JSON does not have, such as
    NaN, are ``None``.

    Raises:
        BadReplyError: The reply is something else.
    """
    text = body.removeprefix(_MARK).strip(_BLANK)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _lenient(text)
    if isinstance(value, dict):
        return value
    kind = "no JSON object"
    page = content_type.startswith(("text/html", "application/xhtml"))
    if content_type.startswith("text/event-stream") or text.startswith(_EVENTS):
        kind = "a stream of events, no JSON"
    elif text and (page or text[:20].lower().startswith(_PAGES)):
        kind = "a page of HTML, no JSON"
    shown = text[:_SHOWN].decode(errors="replace")
    error = BadReplyError(f"the reply of {url} is {kind}: {shown!r}")
    error.never_json = kind != "no JSON object"
    raise error


def _lenient(text: bytes) -> Any:
    """Return the value of JSON with NaN, large numbers or halves of characters; else ``None``."""
    try:
        return _plain(json.loads(text.decode()))
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """Return a value that can be stored."""
    if isinstance(value, dict):
        return {_text(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -_LARGEST <= value < 2 * _LARGEST else float(value)
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
