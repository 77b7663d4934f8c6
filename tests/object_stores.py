"""Object stores for tests: an S3 server in a process of its own, and a store in memory."""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import pytest
from typing_extensions import override

from dagster_dataops.checkpoints import checkpoint
from dagster_dataops.checkpoints.journal import sent_pieces
from dagster_dataops.checkpoints.places import sent_segments, uploaded_draft
from dagster_dataops.checkpoints.resume import known_outcomes
from dagster_dataops.configuration import config, root_setting
from dagster_dataops.errors import StorageError
from dagster_dataops.execution.runners import stream_runner
from dagster_dataops.foundation.places.open_stores import reading, use, writing
from dagster_dataops.foundation.places.result_store import (
    ConflictError,
    ListedObject,
    ResultStore,
    Status,
    Upload,
    Version,
)
from dagster_dataops.foundation.places.root import Root

__all__ = ["reading", "use", "writing"]

SECRETS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
}
# The server of moto looks at 200 folders and patterns for each request to find its service, and
# writes a line: half of its time.
_S3_ALONE = """
import logging
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import main

logging.getLogger("werkzeug").setLevel(logging.ERROR)
DomainDispatcherApplication.get_backend_for_host = lambda self, host: "s3"
"""


def leave_short_parts(patch: pytest.MonkeyPatch) -> None:
    """Let also short parts of a result stay in their objects."""
    patch.setattr(sent_segments, "LEAST_PART_BYTES", 0)
    patch.setattr(sent_segments, "LEAST_OBJECT_BYTES", 0)
    patch.setattr(known_outcomes, "LEAST_BYTES", 0)


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server with the bucket ``results``; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = _S3_ALONE + f"main(['-H', '127.0.0.1', '-p', '{port}'])"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address, server)
            new = urllib.request.Request(f"{address}/results", method="PUT")  # noqa: S310
            urllib.request.urlopen(new).close()  # noqa: S310
            yield address
        finally:
            server.kill()


def _wait_for(address: str, server: "subprocess.Popen[bytes]") -> None:
    while True:
        try:
            urllib.request.urlopen(address).close()  # noqa: S310
        except urllib.error.HTTPError:
            return
        except OSError:
            assert server.poll() is None, "the S3 server ended"
            time.sleep(0.05)
        else:
            return


class Answer(NamedTuple):
    """The answer to a request that is not carried out."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


class _Proxy(BaseHTTPRequestHandler):
    """Forwards requests to an address, but for those that fail."""

    address: str
    fails: Callable[[str, str], str | Answer]
    protocol_version = "HTTP/1.1"

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.fails(self.command, self.path)
        if isinstance(fault, Answer) or fault.isdecimal():
            self.refuse(fault if isinstance(fault, Answer) else Answer(int(fault)))
            return
        there = http.client.HTTPConnection(urlsplit(self.address).netloc)
        there.request(self.command, self.path, body, self.sent(fault))
        answer = there.getresponse()
        data = answer.read()
        if fault == "drop":
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                self.send_header(name, value)
        given = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
        self.send_header("Content-Length", str(given or 0))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # the client was killed
            self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
        there.close()
        self.close_connection = self.close_connection or fault == "cut"

    def sent(self, fault: str) -> dict[str, str]:
        left_out = "if-" if fault == "unconditional" else " "
        return {k: v for k, v in self.headers.items() if not k.lower().startswith(left_out)}

    def refuse(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def unreliable(address: str, fails: Callable[[str, str], str | Answer]) -> Iterator[str]:
    """Run a proxy before an S3 server that refuses a request, or cuts its answer, on demand.

    Args:
        address: Of the server.
        fails: Gets method and path; returns ``""``, an HTTP status such as ``"503"``, an answer,
            ``"cut"``, ``"drop"`` for no answer to a request that was carried out, or
            ``"unconditional"`` for a request whose conditions (``If-Match``, ``If-None-Match``)
            are ignored.
    """
    methods = ("GET", "HEAD", "PUT", "POST", "DELETE")
    members = {f"do_{method}": _Proxy.forward for method in methods}
    members |= {"address": address, "fails": staticmethod(fails)}
    handler = type("Handler", (_Proxy,), members)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


Request: TypeAlias = Callable[[], AbstractContextManager[None]]


class FakeStore(ResultStore):
    """A bucket in memory. Copies made by `seen_by` share the objects.

    Args:
        request: Returns a block around every request.

    Attributes:
        objects: Content and version of each object.
        modified: When each was written, in seconds since 1970.
        uploads: The keys of uploads that were begun, and neither finished nor aborted.
        written: The content of each object that was ever written, in order.
    """

    url = "fake://bucket"

    def __init__(self, request: Request = nullcontext) -> None:
        self.objects: dict[str, tuple[bytes, Version]] = {}
        self.modified: dict[str, float] = {}
        self.uploads: set[str] = set()
        self.written: list[bytes] = []
        self._versions = count(1)
        self.request = request

    def seen_by(self, request: Request) -> "FakeStore":
        other = FakeStore(request)
        other.objects, other.uploads, other._versions = self.objects, self.uploads, self._versions
        other.modified, other.written = self.modified, self.written
        return other

    def _store(self, key: str, data: bytes) -> Version:
        version = Version(f"v{next(self._versions)}")
        self.objects[key] = (bytes(data), version)
        self.modified[key] = time.time()
        self.written.append(bytes(data))
        return version

    @override
    def create(self, key: str, data: bytes) -> Version:
        return self.replace(key, data, None)

    @override
    def replace(self, key: str, data: bytes, seen: Version | None) -> Version:
        with self.request():
            found = self.objects.get(key)
            if (None if found is None else found[1]) != seen:
                raise ConflictError(key)
            return self._store(key, data)

    @override
    def put(self, key: str, data: bytes, *, in_parts: bool = False) -> None:
        with self.request():
            self._store(key, data)

    @override
    def upload(self, key: str, path: Path) -> None:
        with self.request():
            self._store(key, path.read_bytes())

    @override
    def begin_upload(self, key: str, part_bytes: int) -> Upload:
        with self.request():
            return FakeUpload(self, key, part_bytes)

    @override
    def read(self, key: str) -> tuple[bytes, Version] | None:
        with self.request():
            return self.objects.get(key)

    @override
    def read_range(self, key: str, start: int, length: int, version: Version | None) -> bytes:
        with self.request():
            found = self.objects.get(key)
            if found is None or version not in {None, found[1]}:
                raise ConflictError(key)
            return found[0][start : start + length]

    @override
    def read_start(self, key: str, length: int) -> tuple[Status, bytes] | None:
        with self.request():
            found = self.objects.get(key)
            return None if found is None else (Status(len(found[0]), found[1]), found[0][:length])

    @override
    def read_on(self, key: str, start: int, end: int, version: Version) -> Iterator[bytes]:
        data = self.read_range(key, start, end - start, version)
        for at in range(0, len(data), 1 << 20):
            yield data[at : at + (1 << 20)]

    @override
    def status(self, key: str) -> Status | None:
        with self.request():
            found = self.objects.get(key)
            return None if found is None else Status(len(found[0]), found[1])

    @override
    def names(self, prefix: str) -> list[str]:
        with self.request():
            return sorted(key for key in self.objects if key.startswith(f"{prefix}/"))

    @override
    def listed(self, prefix: str) -> dict[str, ListedObject]:
        with self.request():
            return {
                key: ListedObject(Status(len(data), version), self.modified[key])
                for key, (data, version) in self.objects.items()
                if not prefix or key.startswith(f"{prefix}/")
            }

    @override
    def names_in(self, prefix: str) -> list[str]:
        return [key for key in self.names(prefix) if "/" not in key[len(prefix) + 1 :]]

    @override
    def remove(self, keys: Iterable[str]) -> None:
        listed = list(keys)
        if listed:
            with self.request():
                for key in listed:
                    self.objects.pop(key, None)


class KilledError(BaseException):
    """The process ended."""


def killed_at(store: FakeStore, number: int, *, answered: bool) -> FakeStore:
    """Return the store for a process that ends at a request, perhaps after it was carried out."""
    left = [number]

    @contextmanager
    def request() -> Iterator[None]:
        left[0] -= 1
        if left[0] < 0 and not answered:
            raise KilledError
        yield
        if left[0] < 0:
            raise KilledError

    return store.seen_by(request)


class FakeUpload(Upload):
    """An upload; each part is a request."""

    def __init__(self, store: FakeStore, key: str, part_bytes: int) -> None:
        self._store, self._key, self._part_bytes = store, key, part_bytes
        self._data, self._sent = bytearray(), 0
        store.uploads.add(key)

    @override
    def write(self, data: bytes) -> None:
        self._data += data
        while len(self._data) - self._sent >= self._part_bytes:
            with self._store.request():
                self._sent += self._part_bytes

    @override
    def finish(self) -> None:
        self._store.put(self._key, bytes(self._data))
        self._store.uploads.discard(self._key)

    @override
    def abort(self) -> None:
        with suppress(StorageError), self._store.request():
            self._store.uploads.discard(self._key)


def machine(scratch: Path, store: ResultStore, prefix: str = "root") -> Root:
    """Return the root, on a machine of its own, of results that ``store`` holds."""
    with config.temporary(data_process_scratch=scratch):
        root = root_setting("root", f"memory://bucket/{prefix}")
    assert root.bucket is not None
    use(root.bucket, store)
    return root


def leave_unsent_at_most(patch: pytest.MonkeyPatch, size: int) -> None:
    """Set how many bytes of outputs a machine has that are not sent; the workers then wait."""
    for module in (sent_pieces, checkpoint):
        patch.setattr(module, "MOST_UNSENT_BYTES", size)
    patch.setattr(sent_pieces, "_LEAST_ROOM_BYTES", size // 4)
    for module in (checkpoint, stream_runner):
        patch.setattr(module, "SEND_BYTES", size // 4)


def keep_at_most(patch: pytest.MonkeyPatch, *, outputs: int, result: int) -> None:
    """Set how much of what a bucket has this machine keeps.

    Args:
        patch: Makes the changes.
        outputs: Bytes of outputs of a run.
        result: Bytes of a result; a larger one is left in the bucket.
    """
    patch.setattr(sent_segments, "KEPT_BYTES", outputs)
    patch.setattr(uploaded_draft, "LARGE_BYTES", result)
