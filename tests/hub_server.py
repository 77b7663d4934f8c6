"""Run a Hub of Hugging Face on this machine, with the calls that readers and exports make."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.streams.serving import serving

LARGE = 200  # bytes of a file from which it is sent by LFS


class Hub:
    """The state of the Hub: repositories with commits, and blobs.

    Attributes:
        repos: The commits of each dataset, the oldest first: id and files by path.
        token: The token that writers, and readers of private datasets, must send.
        private: Names of datasets that need the token.
        calls: Method and path of each call.
        sent: Number of bytes of file contents that were sent.
        cards: The YAML of the card of each dataset, as the API returns it.
        fault: Return the status, or a function of the handler, for a call that fails.
    """

    def __init__(self) -> None:
        self.repos: dict[str, list[tuple[str, dict[str, bytes]]]] = {}
        self.blobs: dict[str, bytes] = {}
        self.token, self.private = "hf_good", set[str]()
        self.calls: list[tuple[str, str]] = []
        self.sent = 0
        self.cards: dict[str, dict[str, Any]] = {}
        self.fault: Callable[[str, str], Any] = lambda method, path: None
        self.lock = threading.Lock()
        self.endpoint = ""

    def commit(self, repo: str, files: dict[str, bytes]) -> str:
        """Add a commit with these files and no others; return its id."""
        commits = self.repos.setdefault(repo, [])
        text = f"{repo} {len(commits)} {sorted(files)}"
        commits.append((hashlib.sha1(text.encode()).hexdigest(), dict(files)))  # noqa: S324
        return commits[-1][0]

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes] | None:
        """Return the files of a revision; ``None`` if there is none."""
        commits = self.repos.get(repo, [])
        if revision == "main" and commits:
            return commits[-1][1]
        return next((files for sha, files in commits if sha == revision), None)

    def sha(self, repo: str, revision: str = "main") -> str:
        shas = [sha for sha, _ in self.repos.get(repo, [])]
        return revision if revision in shas else shas[-1]


@contextmanager
def running() -> Iterator[Hub]:
    """Run a Hub on a free port."""
    hub = Hub()

    class Bound(_Handler):
        state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield hub


def use(hub: Hub, monkeypatch: Any) -> None:
    """Let huggingface_hub of this process call a Hub, without files of the user.

    The environment is read when it is imported, so the values read from it are replaced.
    """
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    address = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", hub.token)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def _handle(self) -> None:
        hub = self.state
        path = unquote(urlsplit(self.path).path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunked()
        self.again = lambda: self._route(path, body)  # for faults
        with hub.lock:
            hub.calls.append((self.command, path))
            fault = hub.fault(self.command, path)
        if callable(fault):
            fault(self)
        elif fault is not None:
            self.reply(fault, {"error": "a fault of the test"})
        else:
            self._route(path, body)

    do_GET = do_HEAD = do_POST = do_PUT = _handle  # noqa: N815 - names of the base class

    def _chunked(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _route(self, path: str, body: bytes) -> None:
        routes = [
            (r"/api/whoami-v2", self.user),
            (r"/api/repos/create", self.create),
            (r"/api/validate-yaml", self.validate),
            (r"/api/datasets/([^/]+/[^/]+)/preupload/(.+)", self.preupload),
            (r"/api/datasets/([^/]+/[^/]+)/commit/(.+)", self.commit),
            (r"/api/datasets/([^/]+/[^/]+)/tree/([^/]+)(?:/(.*))?", self.tree),
            (r"/api/datasets/([^/]+/[^/]+)/paths-info/(.+)", self.paths_info),
            (r"/api/datasets/([^/]+/[^/]+)/revision/(.+)", self.revision),
            (r"/api/datasets/([^/]+/[^/]+)", self.revision),
            (r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.resolve),
            (r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", self.lfs_batch),
            (r"/lfs/(\w+)", self.lfs_put),
        ]
        for pattern, handler in routes:
            if found := re.fullmatch(pattern, path):
                groups = [one for one in found.groups() if one is not None]
                if groups and "/" in groups[0] and not self._check_token(groups[0], handler):
                    return
                handler(body, *groups)
                return
        self.reply(404, {"error": f"no such call: {path}"})

    def _check_token(self, repo: str, handler: Any) -> bool:
        """Return whether a call is allowed; answer it if not."""
        hub, sent = self.state, self.headers.get("Authorization", "")
        writes = handler in (self.preupload, self.commit, self.lfs_batch)
        good = sent == f"Bearer {hub.token}"
        if repo not in hub.repos:
            self.reply(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif sent and not good:
            self.reply(401, {"error": "Invalid credentials"})
        elif repo in hub.private and not good:
            self.reply(401, {"error": "gated"}, {"X-Error-Code": "GatedRepo"})
        elif writes and not good:
            self.reply(403, {"error": "no write access"})
        else:
            return True
        return False

    def user(self, _: bytes) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.state.token}":
            self.reply(401, {"error": "Invalid credentials"})
        else:
            self.reply(200, {"name": "org", "type": "user", "auth": {}})

    def create(self, body: bytes) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.state.token}":
            self.reply(401, {"error": "Invalid credentials"})
            return
        asked = json.loads(body)
        repo = f"{asked.get('organization') or 'org'}/{asked['name']}"
        known = repo in self.state.repos
        if not known:
            self.state.commit(repo, {".gitattributes": b""})
            if asked.get("private") or asked.get("visibility") == "private":
                self.state.private.add(repo)
        address = f"{self.state.endpoint}/datasets/{repo}"
        self.reply(409 if known else 200, {"url": address, "id": repo, "name": repo})

    def validate(self, _: bytes) -> None:
        self.reply(200, {"errors": [], "warnings": []})

    def _files(self, repo: str, revision: str) -> dict[str, bytes] | None:
        files = self.state.files(repo, revision)
        if files is None:
            error = {"X-Error-Code": "RevisionNotFound"}
            self.reply(404, {"error": f"Invalid rev id: {revision}"}, error)
        return files

    def revision(self, _: bytes, repo: str, revision: str = "main") -> None:
        files = self._files(repo, revision)
        if files is not None:
            facts = {
                "id": repo,
                "sha": self.state.sha(repo, revision),
                "private": repo in self.state.private,
                "siblings": [{"rfilename": name} for name in sorted(files)],
                "cardData": self.state.cards.get(repo),
                "tags": [],
                "downloads": 0,
                "likes": 0,
                "gated": False,
                "disabled": False,
            }
            self.reply(200, facts)

    def tree(self, _: bytes, repo: str, revision: str, folder: str = "") -> None:
        files = self._files(repo, revision)
        if files is not None:
            inside = f"{folder}/" if folder else ""
            self.reply(
                200,
                [_entry(name, files[name]) for name in sorted(files) if name.startswith(inside)],
            )

    def paths_info(self, body: bytes, repo: str, revision: str) -> None:
        files = self._files(repo, revision)
        if files is not None:
            text = body.decode()
            asked = (
                json.loads(text)["paths"]
                if text.startswith("{")
                else [unquote(one[6:]) for one in text.split("&") if one.startswith("paths=")]
            )
            self.reply(200, [_entry(name, files[name]) for name in asked if name in files])

    def resolve(self, _: bytes, repo: str, revision: str, name: str) -> None:
        files = self._files(repo, revision)
        if files is None:
            return
        if name not in files:
            self.reply(404, {"error": "no entry"}, {"X-Error-Code": "EntryNotFound"})
            return
        content, status, more = files[name], 200, {}
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start, end = int(found[1]), int(found[2] or len(content) - 1)
            more = {"Content-Range": f"bytes {start}-{min(end, len(content) - 1)}/{len(content)}"}
            content, status = content[start : end + 1], 206
        self.state.sent += len(content)
        headers = {
            "ETag": f'"{_digest(files[name])}"',
            "X-Repo-Commit": self.state.sha(repo, revision),
            "Accept-Ranges": "bytes",
            **more,
        }
        self.raw(status, content, headers)

    def preupload(self, body: bytes, *_: str) -> None:
        modes = [
            {
                "path": one["path"],
                "uploadMode": "lfs" if one["size"] >= LARGE else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for one in json.loads(body)["files"]
        ]
        self.reply(200, {"files": modes})

    def lfs_batch(self, body: bytes, *_: str) -> None:
        objects = []
        for one in json.loads(body)["objects"]:
            known = one["oid"] in self.state.blobs
            address = {"href": f"{self.state.endpoint}/lfs/{one['oid']}"}
            objects.append({**one, **({} if known else {"actions": {"upload": address}})})
        self.reply(200, {"transfer": "basic", "objects": objects})

    def lfs_put(self, body: bytes, oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            self.reply(400, {"error": "another digest"})
            return
        self.state.blobs[oid] = body
        self.raw(200, b"", {})

    def commit(self, body: bytes, repo: str, revision: str) -> None:
        hub = self.state
        files = dict(hub.files(repo, revision) or {})
        for line in map(json.loads, body.splitlines()):
            key, value = line["key"], line["value"]
            if key == "header" and value.get("parentCommit") not in {None, hub.sha(repo)}:
                self.reply(412, {"error": "the branch has moved"})
                return
            if key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                if value["oid"] not in hub.blobs:
                    self.reply(400, {"error": f"no blob {value['oid']}"})
                    return
                files[value["path"]] = hub.blobs[value["oid"]]
            elif key == "deletedFile":
                files.pop(value["path"])
        sha = hub.commit(repo, files)
        address = f"{hub.endpoint}/datasets/{repo}/commit/{sha}"
        self.reply(200, {"success": True, "commitOid": sha, "commitUrl": address})

    def reply(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        more = {"Content-Type": "application/json", **(headers or {})}
        self.raw(status, json.dumps(value).encode(), more)

    def raw(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324


def _entry(path: str, content: bytes) -> dict[str, Any]:
    facts = {"type": "file", "path": path, "size": len(content), "oid": _blob_id(content)}
    if len(content) >= LARGE:
        facts["lfs"] = {"oid": _digest(content), "size": len(content), "pointerSize": 130}
    return facts
