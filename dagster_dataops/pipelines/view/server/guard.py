"""`Guard`: refuses requests that are not of this machine, and sends the headers of safe pages.

A page of another site can make a browser send requests to this server: by a host name that resolves
to 127.0.0.1, or by an element of the page. Both are refused. A view with reviews takes decisions,
from its own pages alone.
"""

import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from dagster_dataops.pipelines.view.server.page_templates import copy_script

_HOST: Final = re.compile(r"(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_SCRIPT: Final = base64.b64encode(hashlib.sha256(copy_script().encode()).digest()).decode()
_HEADERS: Final = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'self'; script-src 'sha256-{_SCRIPT}'; "
        "img-src 'self' data:; media-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_WRITING: Final = {"referrer-policy": "same-origin"}  # else browsers name no origin
_METHODS: Final = frozenset({"GET", "HEAD"})

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Guard:
    """An application that passes permitted requests to another one, and refuses others.

    ``writes`` is the beginning of the addresses that take forms; empty if none does.
    """

    def __init__(
        self, app: Callable[[_Scope, _Receive, _Send], Awaitable[None]], writes: str = ""
    ) -> None:
        self._app, self._writes = app, writes

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (_HEADERS | _WRITING if writes else _HEADERS).items():
                    headers[name] = value
            await send(message)

        writes = bool(self._writes) and scope["path"].startswith(self._writes)
        refused = _refused(scope["method"], Headers(scope=scope), writes=writes)
        answer = PlainTextResponse(refused[1], refused[0]) if refused else self._app
        await answer(scope, receive, send_safely)


def _refused(method: str, headers: Headers, *, writes: bool) -> tuple[int, str] | None:
    """Return status and reason of a refusal; ``None`` for a request that is answered."""
    if method not in _METHODS and not (writes and method == "POST"):
        return 405, "The view changes nothing here: it answers GET and HEAD only.\n"
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return 403, (
            "The view answers only requests to this machine: open it as http://localhost or "
            "http://127.0.0.1. From another machine: ssh -L 8765:localhost:8765 THIS-MACHINE\n"
        )
    if method == "POST" and headers.getlist("origin") != [f"http://{hosts[0]}"]:
        return 403, "The view takes decisions from its own pages alone.\n"
    site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
    if site in {"cross-site", "same-site"} and mode != "navigate":
        return 403, "The view answers no requests that come from pages of other sites.\n"
    return None
