"""A web server over a folder, with or without ranges, which can break connections on request."""

import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    """Attributes: ranges, dated (whether it reports modification times), cut_after, requests.

    ``sent``: how many bytes of files it has sent.
    ``login``: the value of the header ``Authorization`` that it asks for.
    ``encoded``: whether it sends ``.gz`` files with ``Content-Encoding: gzip``, as Apache does.
    """

    daemon_threads = True

    def __init__(self, folder, *, ranges, dated=True):
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.ranges, self.dated = ranges, dated
        self.encoded = False
        self.sent = 0
        self.login = None
        self.cuts = []  # after how many bytes each of the next connections breaks
        self.requests = []
        self.refusals = []  # the statuses with which the next requests are refused
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # connections that a client closes


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def send_header(self, keyword, value):
        if keyword == "Last-Modified" and not self.server.dated:
            return
        super().send_header(keyword, value)

    def end_headers(self):
        if self.server.encoded and self.path.endswith(".gz"):
            self.send_header("Content-Encoding", "gzip")
        super().end_headers()

    def do_HEAD(self):
        if not self._is_refused():
            super().do_HEAD()

    def _is_refused(self):
        login = self.server.login
        refused = login is not None and self.headers.get("Authorization") != login
        if refused:
            self.send_error(401)
        return refused

    def do_GET(self):
        if self._is_refused():
            return
        wanted = self.headers.get("Range")
        self.server.requests.append(wanted)
        if self.server.refusals:
            self.send_error(self.server.refusals.pop(0))
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", wanted or "")
        file = self.send_head() if not (found and self.server.ranges) else None
        if file is None and not found:
            return
        if file is not None:
            with file:
                self._send(file.read())
            return
        with Path(self.translate_path(self.path)).open("rb") as content:
            size = content.seek(0, 2)
            first, last = int(found[1]), min(int(found[2]), size - 1)
            content.seek(first)
            part = content.read(last - first + 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self._send(part)

    def _send(self, content):
        if self.server.cuts and len(content) > self.server.cuts[0]:
            self.wfile.write(content[: self.server.cuts.pop(0)])
            self.close_connection = True
        else:
            self.server.sent += len(content)  # before the client can go on
            self.wfile.write(content)


@contextmanager
def served(folder, *, ranges, dated=True):
    with serving(Server(folder, ranges=ranges, dated=dated)) as server:
        yield server


@contextmanager
def serving(server):
    """Run a server in a thread."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
