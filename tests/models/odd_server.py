"""A server that answers as a test says: any status, headers and bytes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Sent(NamedTuple):
    """A request that the server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Answer(NamedTuple):
    """What the server sends."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


class OddServer:
    """A server with scripted answers.

    Attributes:
        address: Its address, with ``/v1``.
        requests: What it got so far.
        uploads: The bodies that were no JSON.
        answer: Makes the answer to a request: an `Answer`, or an object to be sent as JSON.
    """

    def __init__(self, port: int) -> None:
        self.host = f"http://127.0.0.1:{port}"
        self.address = f"{self.host}/v1"
        self.requests: list[Sent] = []
        self.uploads: list[bytes] = []
        self.answer: Callable[[Sent], Any] = lambda _: chat_reply("Paris")

    def send(self, sent: Sent) -> Answer:
        """Return the answer to a request."""
        self.requests.append(sent)
        made = self.answer(sent)
        return made if isinstance(made, Answer) else Answer(json.dumps(made).encode())


def chat_reply(content: Any = "Paris", finish: Any = "stop", **message: Any) -> dict[str, Any]:
    """Return a chat completion without usage."""
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said}
    if finish != "absent":
        choice["finish_reason"] = finish
    return {"id": "c-1", "model": "m", "choices": [choice]}


def with_usage(reply: dict[str, Any], tokens_in: int = 10, tokens_out: int = 5) -> dict[str, Any]:
    """Return a reply with a usage."""
    return reply | {"usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}}


@contextmanager
def odd_server() -> Iterator[OddServer]:
    """Yield a server; end it afterwards."""
    server = _Http(("127.0.0.1", 0), _Handler)
    server.odd = OddServer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.odd
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    odd: OddServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - of the base class
        """Log nothing."""

    def handle_one_request(self) -> None:
        """Answer a request."""
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        given = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        server = self.server
        assert isinstance(server, _Http)
        body: dict[str, Any] = {}
        if given.startswith(b"{"):
            body = json.loads(given)
        elif given:
            server.odd.uploads.append(given.partition(b"\r\n\r\n")[2])
        made = server.odd.send(Sent(self.command, self.path, headers, body))
        self.send_response(made.status)
        for name, value in made.headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(made.body)))
        self.end_headers()
        self.wfile.write(made.body)

    do_POST = do_GET = _answer  # noqa: N815 - of the base class
