"""Errors of calls to the Hub of Hugging Face."""

import re
from typing import Final

from huggingface_hub.errors import HfHubHTTPError

DENIED: Final = {401, 403, 404}  # the Hub hides what a token may not read
_MOVED: Final = 412  # another commit came first
_TRANSIENT: Final = {408, _MOVED, 429, *range(500, 600)}
_HTTP_ERROR: Final = HfHubHTTPError.__bases__[0]  # of the HTTP client of the installed version
_QUERY: Final = re.compile(r"\?\S+")
_SHOWN: Final = 300  # characters of the text of an error


def status_of(error: BaseException) -> int | None:
    """Return the status of the reply that led to an error; ``None`` if there was no reply."""
    status = getattr(getattr(_http_error(error), "response", None), "status_code", None)
    return None if status is None else int(status)


def is_transient(error: BaseException) -> bool:
    """Return whether a call may succeed later: the server or the connection failed."""
    status = status_of(error)
    return _http_error(error) is not None if status is None else status in _TRANSIENT


def shown(error: BaseException) -> str:
    """Return type and text of an error, without the queries of addresses: some are signatures."""
    return f"{type(error).__name__}: {_QUERY.sub('?...', str(error))[:_SHOWN]}"


def _http_error(error: BaseException | None) -> BaseException | None:
    """Return the error of the HTTP client that led to an error."""
    while error is not None and not isinstance(error, _HTTP_ERROR):
        error = error.__cause__
    return error
