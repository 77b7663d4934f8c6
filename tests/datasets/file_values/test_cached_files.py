"""Tests of files of servers: the folder that keeps them, and logins by URL."""

import gzip
import os
import tarfile
from typing import Any

import pytest

from dagster_dataops import config, data_register, pipeline
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.files import FileChangedError, FileError, FileReference
from dagster_dataops.readers import read_files
from dagster_dataops.streams.files.logins import with_login
from tests.each import each
from tests.streams.serving import served

LOGIN = "Bearer of tests"
CONTENT = os.urandom(3000)
LARGE = (256 << 20) + 1000  # bytes; more than is held in memory


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    for name in ("a.bin", "b.bin"):
        (folder / name).write_bytes(CONTENT)
    with tarfile.open(folder / "s.tar", "w") as tar:
        tar.add(folder / "a.bin", "1.bin")
    (folder / "s.tar.gz").write_bytes(gzip.compress((folder / "s.tar").read_bytes()))
    return folder


@pytest.fixture
def kept(tmp_path):
    with config.temporary(file_cache=tmp_path / "kept"):
        yield tmp_path / "kept"


@pytest.fixture
def login():
    yield config.url_options
    config.url_options.clear()


@each("name", ["a.bin", "s.tar#1.bin", "s.tar.gz#1.bin"])
@each("way", ["read", "local", "open"])
def test_a_file_is_fetched_once(folder, kept, name, way):
    with served(folder, ranges=True) as server:
        reference = FileReference(f"{server.url}/{name}")
        assert reference.read() == CONTENT
        sent = server.sent
        if way == "read":
            assert reference.read() == CONTENT
        elif way == "local":
            with reference.local() as path:
                assert path.read_bytes() == CONTENT
        else:
            with reference.open() as file:
                assert file.read() == CONTENT
        assert server.sent - sent <= 512  # a header of a tar


def test_a_file_in_a_compressed_tar_is_kept(folder, kept):
    with served(folder, ranges=True) as server:
        assert FileReference(f"{server.url}/s.tar.gz#1.bin").read() == CONTENT
    assert any(CONTENT in path.read_bytes() for path in kept.rglob("*") if path.is_file())


def test_a_replaced_file_is_fetched_again_and_a_told_version_checked(folder, kept):
    with served(folder, ranges=True) as server:
        reference = FileReference(f"{server.url}/a.bin")
        told = reference.with_facts()
        assert told.read() == reference.read() == CONTENT
        (folder / "a.bin").write_bytes(b"other")
        os.utime(folder / "a.bin", (1, 1))
        assert reference.read() == b"other"
        with pytest.raises(FileChangedError):
            told.read()


def test_a_damaged_copy_counts_as_missing_and_a_full_folder_is_no_error(folder, kept):
    with served(folder, ranges=True) as server:
        reference = FileReference(f"{server.url}/a.bin")
        reference.read()
        (copy,) = (path for path in kept.rglob("*") if path.is_file() and path.name != "account")
        copy.write_bytes(copy.read_bytes()[:-3000] + b"x" * 3000)
        assert reference.read() == CONTENT
        with config.temporary(file_cache_gb=0):
            assert FileReference(f"{server.url}/b.bin").read() == CONTENT


def test_files_of_this_machine_and_files_without_a_version_are_not_kept(folder, kept):
    assert FileReference(str(folder / "a.bin")).read() == CONTENT
    with served(folder, ranges=True, dated=False) as server:
        for name in ("a.bin", "s.tar#1.bin", "s.tar.gz#1.bin"):
            assert FileReference(f"{server.url}/{name}").read() == CONTENT
    assert not kept.exists()


@each("value", ["s3://bucket/files", "a\0b"])
def test_the_folder_must_be_one_of_this_machine(value):
    with config.temporary(file_cache=value), pytest.raises(ConfigurationError, match="file_cache"):
        _ = config.file_cache


@data_register("data.kept_files")
def count_remote_bytes(record: dict[str, Any]) -> dict[str, Any]:
    reference = FileReference.of(record["file"])
    record["bytes"] = len(reference.read())
    return record


@pytest.mark.slow
@each("name", ["a.bin", "s.tar#1.bin"])
def test_worker_processes_have_the_logins_and_the_folder(folder, kept, login, name, tmp_path):
    with served(folder, ranges=True) as server:
        server.login = LOGIN
        login[server.url] = {"headers": {"Authorization": LOGIN}}
        root = tmp_path / f"root-{name}"
        with config.temporary(data_process_path=root), pipeline("kept") as ppl:
            ppl.count = count_remote_bytes(_concurrency_mode="process", _max_workers=1)
        with config.temporary(data_process_path=root):
            result = ppl([{"file": f"{server.url}/{name}"}])
        assert [record["bytes"] for record in result] == [len(CONTENT)]
        assert any(kept.rglob("*"))
        assert not any(LOGIN.encode() in path.read_bytes() for path in root.rglob("*.jsonl"))


@each("name", ["a.bin", "s.tar#1.bin", "s.tar.gz#1.bin"])
def test_a_login_reaches_files_tars_and_listings(folder, login, name):
    with served(folder, ranges=True) as server:
        server.login = LOGIN
        with pytest.raises(FileError):
            FileReference(f"{server.url}/{name}").read()
        login[server.url] = {"headers": {"Authorization": LOGIN}}
        assert FileReference(f"{server.url}/{name}").read() == CONTENT
        login.clear()


def test_a_login_reaches_the_records_of_a_listing(folder, login):
    with served(folder, ranges=True) as server:
        server.login = LOGIN
        login[server.url] = {"headers": {"Authorization": LOGIN}}
        stream = read_files(f"{server.url}/*.bin", content="reference").and_return()
        records = list(stream)
        assert [FileReference.of(record["file"]).read() for record in records] == [CONTENT] * 2


@each(
    "case",
    [
        ("https://a.org/x.png", {"key": 1}),
        ("https://a.org/private/x.png", {"key": 2}),
        ("https://a.org/privately.png", {"key": 1}),
        ("https://a.org.evil/x.png", {}),
        ("https://a.org:8443/x.png", {}),
        ("http://a.org/x.png", {}),
        ("zip://x.png::https://a.org/x.zip", {"https": {"key": 1}}),
        ("s3://bucket/x.png", {"anon": True}),
    ],
)
def test_the_longest_beginning_of_a_url_has_the_login(login, case):
    url, options = case
    login["https://a.org"] = {"key": 1}
    login["https://a.org/private"] = {"key": 2}
    login["s3://"] = {"anon": True}
    assert with_login(url, {}) == options
    assert with_login(url, {"key": 3}) == {**options, "key": 3}


@pytest.fixture
def large(folder):
    """A sparse file above the size that is held in memory."""
    with (folder / "large.bin").open("wb") as file:
        file.truncate(LARGE)
        for at in (0, LARGE // 2, LARGE - 4):
            file.seek(at)
            file.write(b"mark")
    with served(folder, ranges=True) as server:
        yield server, FileReference(f"{server.url}/large.bin")


def read_in(way, reference):
    """Read a file whole; return its size and its last bytes."""
    if way == "read":
        data = reference.read()
        return len(data), data[-4:]
    if way == "digest":
        facts = reference.with_facts(digest=True)
        return facts.size, b"mark"
    with reference.local() as path, path.open("rb") as file:
        file.seek(-4, 2)
        return path.stat().st_size, file.read()


@pytest.mark.slow
@each("way", ["local", "read"])
def test_a_large_file_is_fetched_once_too(large, way, tmp_path):
    server, reference = large
    with config.temporary(file_cache=tmp_path / way, file_cache_gb=1):
        sent = server.sent
        assert read_in(way, reference) == (LARGE, b"mark")
        fetched = server.sent - sent
        assert LARGE <= fetched < LARGE + (8 << 20)
        for again in ("local", "digest"):
            assert read_in(again, reference) == (LARGE, b"mark")
        with reference.open() as file:
            file.seek(LARGE // 2)
            assert file.read(4) == b"mark"
        assert server.sent - sent == fetched
        assert not list((tmp_path / way).rglob(".part-*"))


@pytest.mark.slow
@each("name", ["large.bin", "a.bin"])
def test_a_file_above_the_limit_is_not_kept_and_one_line_says_so(large, name, tmp_path, caplog):
    server, _ = large
    limit = 0.2 if name == "large.bin" else 1e-6
    caplog.clear()
    with config.temporary(file_cache=tmp_path / name, file_cache_gb=limit):
        sent = server.sent
        for _ in range(2):
            with FileReference(f"{server.url}/{name}").local() as path:
                size = path.stat().st_size
        assert server.sent - sent >= 2 * size
        if name == "a.bin":  # one line for all files of the server
            assert FileReference(f"{server.url}/s.tar").read()
    (line,) = [record.getMessage() for record in caplog.records if "GB" in record.getMessage()]
    assert f"file_cache_gb={limit:g}" in line
    assert server.url in line
    assert not [path for path in (tmp_path / name).rglob("*") if path.is_file()]
