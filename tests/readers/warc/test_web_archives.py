"""Tests of dagster_dataops.readers.warc.web_archives."""

import base64
import gzip
import sys

import pytest

from dagster_dataops import errors
from dagster_dataops.readers.warc.web_archives import read_warc
from dagster_dataops.testing import assert_resumes_anywhere

pytest.importorskip("warcio")

PAGES = 12


def written(kind, url, content_type, content):
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{kind}-{url[-2:]}>",
        "WARC-Date": "2026-01-31T12:00:00Z",
        "WARC-Target-URI": url,
        "Content-Type": content_type,
        "Content-Length": len(content),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"WARC/1.1\r\n{lines}\r\n".encode() + content + b"\r\n\r\n"


def page(number):
    url = f"https://example.org/{number}"
    encoding = "latin-1" if number % 2 else "utf-8"
    kind = "text/html; charset=latin-1" if number % 2 else "text/html"
    text = f"page {number} é" * (1 + number * 40)
    http = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode() + text.encode(encoding)
    asked = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
    return [
        written("request", url, "application/http; msgtype=request", asked),
        written("response", url, "application/http; msgtype=response", http),
    ]


@pytest.fixture(params=["warc", "warc.gz"])
def archive(tmp_path, request):
    records = [written("warcinfo", "", "application/warc-fields", b"software: test\r\n")]
    for number in range(PAGES):
        records += page(number)
    if request.param.endswith("gz"):
        records = [gzip.compress(record) for record in records]
    path = tmp_path / f"pages.{request.param}"
    path.write_bytes(b"".join(records))
    return path


def test_pages_are_records(archive):
    rows = list(read_warc(archive, file_key="file"))
    assert len(rows) == PAGES
    assert rows[1]["text"] == "page 1 é" * 41
    assert rows[2]["text"] == "page 2 é" * 81
    shown = {key: rows[1][key] for key in ["type", "url", "status", "content_type", "file"]}
    assert shown == {
        "type": "response",
        "url": "https://example.org/1",
        "status": 200,
        "content_type": "text/html; charset=latin-1",
        "file": str(archive),
    }
    assert rows[1]["id"].startswith("<urn:uuid:")
    assert list(rows[0]) == [
        "id", "type", "url", "date", "status", "content_type", "text", "file",
    ]  # fmt: skip


def test_types_are_chosen(archive):
    assert len(list(read_warc(archive, None))) == 1 + 2 * PAGES
    assert {row["type"] for row in read_warc(archive, ["request"])} == {"request"}
    with pytest.raises(errors.StreamArgumentError, match="must be a list of texts"):
        read_warc(archive, "request")


def test_bytes_come_as_base64(archive):
    row = list(read_warc(archive, binary=True))[1]
    assert base64.b64decode(row["base64"]) == ("page 1 é" * 41).encode("latin-1")


def test_they_resume_anywhere(archive):
    assert_resumes_anywhere(lambda: read_warc([archive, archive], None))
    assert_resumes_anywhere(lambda: read_warc(archive).repeat(2))


def test_a_position_is_the_byte_at_which_a_record_begins(archive):
    stream = read_warc(archive).and_return()
    rows = [next(iter(stream)) for _ in range(PAGES)]
    number, place, _ = stream.state_dict()["position"]
    assert (number, place[1]) == (0, 1)
    assert archive.read_bytes()[place[0] :].startswith((b"WARC/1.", b"\x1f\x8b"))
    assert place[0] > archive.stat().st_size * 0.7
    assert rows[-1]["url"].endswith(str(PAGES - 1))


def test_a_truncated_file_is_an_error_after_its_remaining_content(archive):
    content, expected = archive.read_bytes(), list(read_warc(archive, None))
    stream = read_warc(archive, None).and_return()
    begins = [stream.state_dict()["position"][1][0] for _ in stream]
    ends = [*begins[1:], len(content)]
    for cut in set(range(1, len(content), 97)) - {0, *ends, *(end - 4 for end in ends)}:
        archive.write_bytes(content[:cut])
        found = []
        with pytest.raises(
            errors.StreamSourceError, match=r"pages\..*, record at byte \d+: is truncated"
        ):
            for row in read_warc(archive, None):
                found.append(row)  # noqa: PERF402 - to see what came before the error
        assert found == expected[: sum(end <= cut for end in ends)]


def test_a_file_of_whole_records_is_whole(archive):
    content, expected = archive.read_bytes(), list(read_warc(archive, None))
    stream = read_warc(archive, None).and_return()
    for number, end in enumerate(stream.state_dict()["position"][1][0] for _ in stream):
        archive.write_bytes(content[:end])
        assert list(read_warc(archive, None)) == expected[:number]


def test_a_damaged_record_is_named(archive):
    stream = read_warc(archive, None).and_return()
    begins = [stream.state_dict()["position"][1][0] for _ in stream]
    content = bytearray(archive.read_bytes())
    damaged = begins[9] + (20 if archive.suffix == ".gz" else 0)
    content[damaged : damaged + 40] = b"\xff" * 40
    archive.write_bytes(bytes(content))
    found = []
    with pytest.raises(errors.StreamSourceError, match=rf"record at byte {begins[9]}: is"):
        for row in read_warc(archive, None):
            found.append(row)  # noqa: PERF402 - to see what came before the error
    assert len(found) == 9


def test_records_that_were_packed_together_resume_anywhere(tmp_path):
    path = tmp_path / "together.warc.gz"
    records = [record for number in range(5) for record in page(number)]
    path.write_bytes(b"".join(gzip.compress(b"".join(records[at : at + 4])) for at in (0, 4, 8)))
    assert len(list(read_warc(path))) == 5
    assert_resumes_anywhere(lambda: read_warc(path, None))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dagster_dataops.readers.warc.warc_records", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[warc\]"):
        read_warc("x.warc")
