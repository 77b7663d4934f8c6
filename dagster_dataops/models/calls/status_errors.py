"""Map the status and body of a failed call to an error."""

import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final

import orjson

from dagster_dataops.errors import (
    AuthenticationFailedError,
    BadRequestError,
    ContentFilteredError,
    ContextTooLongError,
    ModelError,
    ModelMissingError,
    QuotaExhaustedError,
    RateLimitedError,
    ServerFaultError,
)

_MAX_TEXT: Final = 500
_OVERLOADED: Final = frozenset({429, 503, 529})
_BY_CODE: Final[Mapping[str, type[ModelError]]] = {
    "insufficient_quota": QuotaExhaustedError,
    "context_length_exceeded": ContextTooLongError,
    "content_filter": ContentFilteredError,
    "model_not_found": ModelMissingError,
}
_BY_STATUS: Final[Mapping[int, type[ModelError]]] = {
    401: AuthenticationFailedError,
    402: QuotaExhaustedError,
    403: AuthenticationFailedError,
    404: ModelMissingError,
    408: ServerFaultError,
    409: ServerFaultError,
    429: RateLimitedError,
}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """Return the error for a reply with a status of 400 or more.

    Args:
        status: The status.
        headers: The headers, by name in lower case or of any case-insensitive mapping.
        body: The body; JSON with an ``error`` of OpenAI's form is understood.
    """
    error = _error_object(body)
    code = str(error.get("code") or error.get("type") or "")
    message = error.get("message") or body[:_MAX_TEXT].decode(errors="replace")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status)
    if kind is None:
        kind = ServerFaultError if status >= 500 else BadRequestError
    made = kind(f"status {status}: {str(message)[:_MAX_TEXT]}")
    made.retry_after = retry_after(headers)
    made.overloaded = status in _OVERLOADED
    if request := headers.get("x-request-id"):
        made.details["request_id"] = request
    return made


def _error_object(body: bytes) -> dict[str, Any]:
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(body)
        error = found.get("error") if isinstance(found, dict) else None
        if isinstance(error, dict):
            return error
        if isinstance(error, str):
            return {"message": error}
    return {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers ask to wait; ``None`` if they do not.

    The headers are ``retry-after-ms``, or ``retry-after`` in seconds or as a date.
    """
    with suppress(ValueError, TypeError):
        if headers.get("retry-after-ms"):
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
    text = headers.get("retry-after")
    if text is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None
