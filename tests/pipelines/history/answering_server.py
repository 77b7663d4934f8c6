"""A server of a model on this machine, whose answers a test can change."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class AnsweringServer(ThreadingHTTPServer):
    """Answers a prompt with the prompt and a mark for it.

    Attributes:
        marks: The mark of a prompt, by a text in it; `.` for all others.
        asked: The number of requests.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.marks: dict[str, str] = {}
        self.asked = 0

    @property
    def address(self) -> str:
        """The address for a client."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, prompt: str) -> str:
        """Return the answer to a prompt."""
        self.asked += 1
        found = [mark for text, mark in self.marks.items() if text in prompt]
        return f"{prompt}{found[0] if found else '.'}"


class _Handler(BaseHTTPRequestHandler):
    server: AnsweringServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = self.server.answer(request["messages"][-1]["content"])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        reply = {
            "id": "1",
            "object": "chat.completion",
            "model": request["model"],
            "choices": [{**choice, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering_server() -> Iterator[AnsweringServer]:
    """Yield a running server."""
    with AnsweringServer() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
