"""Tests of the server of the view: refused requests, the headers of pages, files, the command."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import File, config, data, data_register, pipeline
from tests.command_line import main
from tests.each import each
from tests.pipelines.view.conftest import judged
from tests.subprocesses import killed_at_exit
from tests.viewed_pages import Viewer, viewing

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
WAV = (
    b"RIFF\x2c\x08\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\x00\x08\0\0"
)
SOUND = WAV + bytes(range(256)) * 8


@each("host", ["localhost", "localhost:9", "127.0.0.1:8765", "127.8.9.1", "[::1]:80", "LOCALHOST"])
def test_hosts_of_this_machine_are_answered(viewer: Viewer, host: str):
    assert viewer.at_once("/", host=host).status == 200


@each(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "localhost:x",
        "",
        "evil.example:8765",
        "localhost@evil.example",
        "[::2]",
    ],
)
def test_other_hosts_are_refused(viewer: Viewer, host: str):
    page = viewer.at_once("/records/looks/judged", host=host)
    assert page.status == 403
    assert "looks" not in page.source


def test_requests_from_pages_of_other_sites_are_refused_but_for_links(viewer: Viewer):
    other = {"sec-fetch-site": "cross-site"}
    assert viewer.at_once("/", **other, **{"sec-fetch-mode": "no-cors"}).status == 403
    assert viewer.at_once("/", **other, **{"sec-fetch-mode": "navigate"}).status == 200
    same = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors"}
    assert viewer.at_once("/style.css", **same).status == 200


def test_nothing_is_changed_by_a_request(viewer: Viewer, root: Path):
    before = {path: path.stat() for path in root.rglob("*")}
    for page in ("records", "dropped", "failed", "changes", "numbers"):
        viewer.page(f"/{page}/looks/judged")
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert viewer.client.request(method, "/").status_code == 405
    after = {path: path.stat() for path in root.rglob("*")}
    changed = [path for path in after if before.get(path) != after[path]]
    assert [one for one in changed if one.stat().st_mtime_ns != before[one].st_mtime_ns] == []
    assert before.keys() == after.keys()


def test_every_answer_has_a_strict_policy(viewer: Viewer):
    for path in ("/", "/style.css", "/nothing", "/records/looks/judged", "/media/looks/judged"):
        headers = viewer.at_once(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'")
        assert policy.count("script") == 1
        assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy)  # the one that copies
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


def test_pages_name_nothing_of_another_server(viewer: Viewer):
    for path in ("/", "/records/looks/judged", "/numbers/looks/judged", "/changes/looks/judged"):
        page = viewer.page(path)
        addresses = [
            value or ""
            for _, given in page.tags
            for name, value in given.items()
            if name in {"src", "href", "action", "data", "srcset"}
        ]
        outside = [one for one in addresses if re.match(r"\w+:|//", one) and one != "data:,"]
        assert outside == []


@pytest.fixture
def media(root: Path, tmp_path: Path) -> Path:
    """A root with records that name files of several kinds."""
    (tmp_path / "secret.txt").write_text("a secret")
    (tmp_path / "page.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "page.png").write_text("<html><script>alert(1)</script></html>")
    data_register.new_group("played")

    @data_register("data.played")
    def files(record: dict[str, Any]) -> dict[str, Any]:
        return {
            "picture": File(PNG, "image/png"),
            "sound": [File(SOUND, "audio/wav"), "no file"],
            "secret": {"file": str(tmp_path / "secret.txt"), "media_type": "image/png"},
            "vector": {"file": str(tmp_path / "page.svg"), "media_type": "image/svg+xml"},
            "false": {"file": str(tmp_path / "page.png")},
            "far": {"file": "http://127.0.0.1:9/far.png"},
            "gone": {"file": str(tmp_path / "gone.png")},
            "text": "plain",
        }

    with pipeline("played") as ppl:
        ppl.files = files()
    ppl.materialize([{"n": 1}])
    return root


def test_files_are_served_by_the_record_that_names_them(media: Path):
    with viewing(media) as viewer:
        page = viewer.page("/records/played/files")
        sources = [given["src"] for tag, given in page.tags if tag in {"img", "audio", "video"}]
        assert {str(one).partition("?")[0] for one in sources} == {
            "/thumbnail/played/files",
            "/media/played/files",
        }
        assert not any("far" in str(one) for one in sources)
        picture = viewer.client.get("/thumbnail/played/files?line=1&column=picture")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        sound = viewer.client.get("/media/played/files?line=1&column=sound&at=0")
        assert (sound.status_code, sound.content) == (200, SOUND)
        assert sound.headers["content-type"] == "audio/wav"


@each(
    "place",
    [
        "column=secret",
        "column=vector",
        "column=false",
        "column=far",
        "column=gone",
        "column=text",
        "column=sound",
        "column=sound&at=1",
        "column=sound&at=9",
        "column=none",
        "",
        "column=picture&line=2",
        "column=picture&line=0",
        "file=/etc/passwd",
        "column=/etc/passwd",
    ],
)
def test_nothing_but_images_sounds_and_films_of_records_is_served(media: Path, place: str):
    with viewing(media) as viewer:
        query = place if "line=" in place else f"line=1&{place}"
        for page in ("media", "thumbnail"):
            answer = viewer.client.get(f"/{page}/played/files?{query}")
            assert answer.status_code == 404
            assert b"secret" not in answer.content.replace(b"secret.txt", b"")


@each(
    "case",
    [
        ("bytes=0-", 0, None),
        ("bytes=0-99", 0, 100),
        ("bytes=50-59", 50, 60),
        ("bytes=-10", -10, None),
        ("bytes=2000-99999", 2000, None),
    ],
)
def test_parts_of_a_file_are_served(media: Path, case: tuple[str, int, int | None]):
    wanted, start, end = case
    with viewing(media) as viewer:
        path = "/media/played/files?line=1&column=sound&at=0"
        answer = viewer.client.get(path, headers={"range": wanted})
        part = SOUND[start:end]
        assert answer.content == part
        whole = len(part) == len(SOUND)
        assert answer.status_code == (200 if whole else 206)
        if not whole:
            first = start % len(SOUND)
            told = f"bytes {first}-{first + len(part) - 1}/{len(SOUND)}"
            assert answer.headers["content-range"] == told


def test_a_part_that_a_file_does_not_have_is_refused(media: Path):
    with viewing(media) as viewer:
        path = "/media/played/files?line=1&column=sound&at=0"
        assert viewer.client.get(path, headers={"range": "bytes=99999-"}).status_code == 416
        assert viewer.client.get(path, headers={"range": "lines=1-2"}).content == SOUND


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(root: Path, source: Path):
    judged().materialize(source)
    command = [sys.executable, "-m", "dagster_dataops", "view", str(root), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with killed_at_exit(process):
        assert process.stdout is not None
        address = re.search(r"http://localhost:\d+/", process.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0]) as answer:  # noqa: S310 - this machine
            assert b"looks / judged" in answer.read()
        foreign = urllib.request.Request(address[0], headers={"Host": "evil.example"})  # noqa: S310
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign)  # noqa: S310
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=30)
        assert (process.returncode, printed.splitlines()[-1], errors) == (0, "ended", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["no/such/folder"], "a folder of results that exists"),
        (["no_such.py:ppl"], "a Python file that exists"),
        ([".", "--port", "99999999"], "a free port"),
    ],
)
def test_what_cannot_be_shown_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], said: str
):
    assert main(["view", *given]) == 1
    assert said in capsys.readouterr().err


def test_a_file_without_the_pipeline_names_those_that_it_has(tmp_path: Path):
    file = tmp_path / "two_pipelines.py"
    file.write_text(
        "from dagster_dataops import data, pipeline\n"
        "with pipeline('one') as first:\n    first.a = data.text.Normalize()\n"
    )
    with pytest.raises(Exception, match="it has first"), viewing(f"{file}:ppl"):
        pass


def test_the_root_of_a_killed_run_shows_how_far_it_came(root: Path, tmp_path: Path):
    script = tmp_path / "killed.py"
    script.write_text(
        "import os\n"
        "from dagster_dataops import data, data_register, pipeline, config\n"
        "data_register.new_group('dying')\n"
        "@data_register('data.dying', _concurrency_mode='single')\n"
        "def die(record: dict):\n"
        "    if record['n'] == 700: os.kill(os.getpid(), 9)\n"
        "    return record\n"
        f"config.data_process_path = {str(root)!r}\n"
        "with pipeline('dying') as ppl:\n"
        "    ppl.first = data.text.Normalize()\n"
        "    ppl.die = die()\n"
        "ppl.materialize([{'n': n, 'text': 'a'} for n in range(1000)])\n"
    )
    assert subprocess.run([sys.executable, script], check=False).returncode == -signal.SIGKILL
    with viewing(root) as viewer:
        page = viewer.page("/")
        assert "unfinished" in page.text
        assert viewer.page("/records/dying/first").status == 200
        assert "unfinished" in viewer.page("/node/dying/die").text


def test_a_node_of_a_newer_version_is_shown_with_its_error_beside_the_others(
    root: Path, source: Path
):
    judged().materialize(source)
    manifest = root / "looks/judged/judged_results.jsonl.json"
    with viewing(root) as viewer:
        assert viewer.at_once("/records/looks/judged").status == 200
        manifest.write_bytes(manifest.read_bytes().replace(b'"6-little"', b'"7-little"'))
        error = f"{manifest} has format 7-little, of a newer version"
        page = viewer.at_once("/records/looks/judged")  # listed before
        assert (page.status, error in page.text) == (409, True)
    with viewing(root) as viewer:
        page = viewer.at_once("/")
        assert page.status == 200
        assert error in page.text
        assert viewer.at_once("/records/looks/long").status == 200
        for address in ("/records/looks/judged", "/node/looks/judged", "/dropped/looks/judged"):
            assert error in viewer.at_once(address).text


def test_another_process_finds_the_index_and_a_damaged_one_is_made_again(
    root: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pipeline("indexed") as ppl:
        ppl.same = data.text.Normalize()
    with config.temporary(data_process_path=root):
        ppl.materialize(source)
    for damage in (b"", b"{}\n", None):
        with viewing(root) as viewer:
            assert "201 to 225 of 300" in viewer.page("/records/indexed/same?from=201").text
        (index,) = (tmp_path / f"dagster-dataops-view-{os.getuid()}").glob("*.lines")
        assert json.loads(index.read_bytes().partition(b"\n")[0])["line_count"] == 300
        if damage is not None:
            index.write_bytes(damage)
