"""Follow redirects with method and body; credentials stay with their server."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urljoin

from dagster_dataops.errors import WrongServerError
from dagster_dataops.models.calls.server_address import same_server, shown_address

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ANSWERED_ELSEWHERE: Final = 303  # to be fetched with GET: the request itself was handled
_MOST_REDIRECTS: Final = 5


@asynccontextmanager
async def following(
    session: Any,
    method: str,
    url: str,
    private_headers: Mapping[str, str],
    options: Callable[[], Mapping[str, Any]],
) -> AsyncIterator[Any]:
    """Yield the response to a request of aiohttp; redirects are followed with the same method.

    ``private_headers``, such as credentials, are sent to the server of ``url`` alone. ``options``
    returns the other arguments of each request.

    Raises:
        WrongServerError: The server redirects to where the request must not go.
    """
    at, headers = url, private_headers
    for _ in range(1 + _MOST_REDIRECTS):
        arguments = {"headers": headers, "allow_redirects": False, **options()}
        async with session.request(method, at, **arguments) as response:
            if response.status not in _REDIRECTS:
                yield response
                return
            there = _target_of(response, method, at)
        if not _is_same(at, there):
            headers = {}
        at = there
    raise _redirected(url, at, f"more than {_MOST_REDIRECTS} times")


def _target_of(response: Any, method: str, at: str) -> str:
    """Return where a reply redirects to; refuse where the request must not go."""
    location = response.headers.get("location", "")
    there: str = urljoin(at, location)
    if not location or not there.startswith(("http://", "https://")):
        raise _redirected(at, location, "which is no address")
    if response.status == _ANSWERED_ELSEWHERE and method != "GET":
        raise _redirected(at, there, "with status 303, which is no answer to this request")
    if at.startswith("https://") and there.startswith("http://"):
        raise _redirected(at, there, "without encryption")
    return there


def _is_same(at: str, there: str) -> bool:
    try:
        return same_server(at, there)
    except ValueError:
        raise _redirected(at, there, "which is no address") from None


def _redirected(at: str, there: str, why: str) -> WrongServerError:
    reason = (
        f"{shown_address(at)} redirects to {shown_address(there)!r}, {why}; set base_url of the "
        "ModelClient to the server"
    )
    return WrongServerError(reason)
