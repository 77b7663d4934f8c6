"""Tests of remote: files by URL, over real connections."""

import gzip
import json
import zipfile
from itertools import islice

import fsspec
import pytest

from dagster_dataops import errors, list_files, read_jsonl
from dagster_dataops.streams.files import remote
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.text import read_text
from tests.streams.serving import served

pytest.importorskip("aiohttp")

ROWS = [{"n": n, "text": "é" * (n % 50)} for n in range(6000)]
CONTENT = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
FEW = b"".join(CONTENT.splitlines(keepends=True)[:8])


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "served"
    made.mkdir()
    (made / "a.jsonl").write_bytes(CONTENT)
    (made / "a.jsonl.gz").write_bytes(gzip.compress(CONTENT))
    (made / "few.jsonl").write_bytes(FEW)
    with zipfile.ZipFile(made / "all.zip", "w") as archive:
        for name in ["part-2.jsonl", "part-10.jsonl", "other.txt"]:
            archive.writestr(f"below/{name}", json.dumps({"in": name}) + "\n")
    return made


@pytest.fixture(params=[True, False], ids=["ranges", "no ranges"])
def server(folder, request):
    with served(folder, ranges=request.param) as found:
        yield found


@pytest.fixture
def memory():
    found = fsspec.filesystem("memory")
    yield found
    found.rm("/", recursive=True)


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(remote, "_RETRY_DELAYS", (0.0, 0.0, 0.0))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl?token=x*y", "a.jsonl.gz?a=b"])
def test_a_file_is_read_over_http(server, name):
    assert list(read_jsonl(f"{server.url}/{name}", block_size=4096)) == ROWS


def test_a_file_that_the_client_has_decompressed_is_read(server):
    server.encoded = True
    assert list(read_jsonl(f"{server.url}/a.jsonl.gz", block_size=4096)) == ROWS


def test_a_stream_over_http_resumes_from_its_position(server):
    def made():
        return read_jsonl(f"{server.url}/a.jsonl", block_size=1024).and_return()

    stream = made()
    head = list(islice(stream, 4000))
    again = made()
    again.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert head + list(again) == ROWS


def test_with_ranges_the_bytes_before_the_position_are_not_sent(folder, monkeypatch):
    with served(folder, ranges=True) as server:
        url, small = f"{server.url}/a.jsonl", {"block_size": 10_000}
        stream = read_jsonl(url, block_size=1024, storage_options=small).and_return()
        list(islice(stream, 5900))
        state = stream.state_dict()
        again = read_jsonl(url, block_size=1024, storage_options=small).and_return()
        again.load_state_dict(state)
        server.requests.clear()
        assert list(again) == ROWS[5900:]
        starts = [int(one.removeprefix("bytes=").partition("-")[0]) for one in server.requests]
        assert min(starts) > len(CONTENT) * 9 // 10


@pytest.mark.parametrize("url", ["few.jsonl", "a.jsonl.gz"])
def test_files_over_http_resume_anywhere(server, url):
    address = f"{server.url}/{url}"
    assert_resumes_anywhere(lambda: read_jsonl(address, block_size=1024), limit=12)


def test_a_broken_connection_is_opened_again(server, no_pauses):
    server.cuts = [len(CONTENT) // 3, len(CONTENT) // 4, 100]
    assert list(read_jsonl(f"{server.url}/a.jsonl", block_size=4096)) == ROWS
    assert server.cuts == []


def test_requests_to_a_busy_server_are_repeated(server, no_pauses):
    server.refusals = [503, 503]
    assert list(read_jsonl(f"{server.url}/a.jsonl")) == ROWS


def test_a_permanently_broken_connection_is_an_error_with_url_and_advice(server, no_pauses):
    server.cuts = [len(CONTENT) // 2] + [0] * 20
    stream = read_jsonl(f"{server.url}/a.jsonl", block_size=1024).and_return()
    found = []
    with pytest.raises(errors.StreamSourceError, match=r"a\.jsonl: cannot be read.*check the add"):
        found.extend(stream)
    assert found == []  # extend takes all or nothing


def test_items_before_a_broken_connection_are_read_and_the_stream_resumes(folder, no_pauses):
    with served(folder, ranges=True) as server:
        url, small = f"{server.url}/a.jsonl", {"block_size": 10_000}
        stream = read_jsonl(url, block_size=1024, storage_options=small).and_return()
        found, state = [], stream.state_dict()
        with pytest.raises(errors.StreamSourceError):
            for row in stream:
                found.append(row)
                state = stream.state_dict()
                if len(found) == 3000:
                    server.cuts = [0] * 10
        assert len(found) > 3000
        server.cuts = []
        again = read_jsonl(url, block_size=1024).and_return()
        again.load_state_dict(state)
        assert found + list(again) == ROWS


def test_a_missing_file_and_a_missing_server_are_named(server):
    with pytest.raises(errors.StreamSourceError, match=r"/none\.jsonl: there is no such file"):
        list(read_jsonl(f"{server.url}/none.jsonl"))
    with pytest.raises(errors.StreamSourceError, match=r"127\.0\.0\.1:9/x: there is no such file"):
        list(read_jsonl("http://127.0.0.1:9/x"))


def test_a_file_that_changed_is_another_source(server, folder):
    url = f"{server.url}/few.jsonl"
    stream = read_jsonl(url).and_return()
    next(iter(stream))
    state = stream.state_dict()
    (folder / "few.jsonl").write_bytes(CONTENT[:4000])
    with pytest.raises(errors.StreamStateError, match="data"):
        read_jsonl(url).and_return().load_state_dict(state)


def test_without_a_modification_time_a_remote_file_is_identified_by_its_beginning(folder):
    with served(folder, ranges=True, dated=False) as server:
        url = f"{server.url}/few.jsonl"
        stream = read_jsonl(url).and_return()
        next(iter(stream))
        state = stream.state_dict()
        read_jsonl(url).and_return().load_state_dict(state)
        (folder / "few.jsonl").write_bytes(b'{"N"' + FEW[4:])
        with pytest.raises(errors.StreamStateError, match="data"):
            read_jsonl(url).and_return().load_state_dict(state)


def test_members_of_an_archive_are_read_in_natural_order(server, folder):
    expected = [{"in": "part-2.jsonl"}, {"in": "part-10.jsonl"}]
    assert list(read_jsonl(f"zip://below/*.jsonl::file://{folder}/all.zip")) == expected
    if server.ranges:
        assert list(read_jsonl(f"zip://below/*.jsonl::{server.url}/all.zip")) == expected
    with pytest.raises(errors.StreamSourceError, match="matches no file"):
        list(read_jsonl(f"zip://*.csv::file://{folder}/all.zip"))


def test_folders_by_url_are_listed(memory):
    for name in ["d/p2.jsonl", "d/p10.jsonl", "d/_SUCCESS", "d/sub/.crc", "d/sub/p1.jsonl"]:
        memory.pipe(f"/{name}", json.dumps({"in": name}).encode())
    found = ["memory://d/p2.jsonl", "memory://d/p10.jsonl", "memory://d/sub/p1.jsonl"]
    read = [row["file"] for row in read_jsonl("memory://d", file_key="file")]
    assert [one.replace(":///", "://") for one in read] == found
    listed = list(list_files("memory://d", "*.jsonl"))
    assert [one.replace(":///", "://") for one in listed] == found
    assert list(list_files("memory://d", "*.jsonl").yield_from(read_jsonl)) == [
        {"in": one.removeprefix("memory://")} for one in found
    ]
    assert_resumes_anywhere(lambda: list_files("memory://d"))
    assert_resumes_anywhere(lambda: read_jsonl("memory://d/*.jsonl", line_key="line"))


def test_lines_come_by_url_too(memory):
    memory.pipe("/t.txt", "ä\r\nb\r\n".encode("utf-16"))
    assert list(read_text("memory://t.txt", encoding="utf-16")) == ["ä", "b"]


def test_an_unknown_kind_of_url_and_a_missing_package_are_reported():
    with pytest.raises(errors.StreamSourceError, match=r"nosuch://x: .*Protocol not known"):
        list(read_jsonl("nosuch://x"))
    with pytest.raises(errors.StreamSourceError, match=r"needs a package that is not installed"):
        list(read_jsonl("dropbox://x/y"))


def test_a_login_is_shown_nowhere(memory):
    memory.pipe("/s.jsonl", b"{}\n")
    stream = read_jsonl("memory://s.jsonl", storage_options={"secret": "hush"}).and_return()
    list(stream)
    assert "hush" not in json.dumps(stream.state_dict()) + repr(stream.stage)
