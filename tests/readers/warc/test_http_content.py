"""Tests of dagster_dataops.readers.warc.http_content."""

import gzip
import sys
import zlib

import brotli
import pytest
import zstandard

from dagster_dataops import errors, readers
from tests.each import each
from tests.readers.warc.archives import written

PAGE = ("<p>page é 日本</p>" * 300).encode()


def raw_deflate(content):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def chunked(content):
    pieces = [content[at : at + 99] for at in range(0, len(content), 99)]
    return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


def response(content, *headers):
    lines = "".join(f"{one}\r\n" for one in ("Content-Type: text/html", *headers))
    http = f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + content
    url = "https://example.org/0"
    return written("response", url, "application/http; msgtype=response", http)


def texts(tmp_path, *records, on_error="raise"):
    (tmp_path / "a.warc").write_bytes(b"".join(records))
    return [
        row["text"] for row in readers.read_warc(tmp_path / "a.warc").and_return(on_error=on_error)
    ]


@each(
    "case",
    [
        ("gzip", gzip.compress(PAGE)),
        ("X-GZIP", gzip.compress(PAGE)),
        ("gzip", gzip.compress(PAGE[:999]) + gzip.compress(PAGE[999:])),
        ("gzip", gzip.compress(PAGE) + b"behind"),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", raw_deflate(PAGE)),
        ("br", brotli.compress(PAGE)),
        ("zstd", zstandard.compress(PAGE)),
        ("zstd", zstandard.compress(PAGE[:999]) + zstandard.compress(PAGE[999:])),
        ("gzip, gzip", gzip.compress(gzip.compress(PAGE))),
        ("gzip,br", brotli.compress(gzip.compress(PAGE))),
        ("identity", PAGE),
        ("", PAGE),
        ("gzip", PAGE),  # decoded by the crawler
        ("br", PAGE),
        ("zstd", PAGE),
        ("deflate", PAGE),
        ("utf-8", PAGE),
    ],
)
def test_content_encodings_are_removed(tmp_path_factory, case):
    name, content = case
    for record in (
        response(content, f"Content-Encoding: {name}"),
        response(chunked(content), f"Content-Encoding: {name}", "Transfer-Encoding: Chunked"),
    ):
        assert texts(tmp_path_factory.mktemp("x"), record) == [PAGE.decode()]


@each(
    "case",
    [
        ("br", brotli.compress(PAGE)),
        ("gzip", gzip.compress(PAGE)),
        ("zstd", zstandard.compress(PAGE)),
    ],
)
def test_content_that_a_crawler_cut_is_read_as_far_as_it_goes(tmp_path_factory, case):
    name, content = case
    record = response(content[: len(content) - 8], f"Content-Encoding: {name}")
    (found,) = texts(tmp_path_factory.mktemp("x"), record)
    assert PAGE.decode().startswith(found.rstrip("\ufffd"))


@each(
    "case",
    [
        ("compress", b"\x1f\x9d\x90\xff\xfe", "content encoding 'compress' is unknown"),
        ("gzip", gzip.compress(PAGE)[:40] + b"\xff" * 40, "its content is not valid gzip data"),
        ("br", b"\xff" * 40, "its content is not valid br data"),
    ],
)
def test_content_that_cannot_be_decoded_fails_its_record_alone(tmp_path_factory, case):
    name, content, reason = case
    bad, good = response(content, f"Content-Encoding: {name}"), response(b"next")
    folder = tmp_path_factory.mktemp("x")
    with pytest.raises(errors.StreamSourceError, match=f"record at byte 0: .*{reason}"):
        texts(folder, bad, good)
    assert texts(folder, bad, good, on_error="skip") == ["next"]


@each("case", [("br", "brotli", "warc"), ("zstd", "zstandard", "zstd")])
def test_a_missing_package_names_its_extra(tmp_path_factory, case):
    name, package, extra = case
    folder = tmp_path_factory.mktemp("x")
    record = response(b"\xff\xfe", f"Content-Encoding: {name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, package, None)
        with pytest.raises(errors.StreamSourceError, match=rf"dagster-dataops\[{extra}\]"):
            texts(folder, record)
        assert texts(folder, record, response(b"next"), on_error="skip") == ["next"]


@each(
    "case",
    [
        (["Transfer-Encoding: gzip, chunked"], chunked(gzip.compress(PAGE))),
        (["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], chunked(gzip.compress(PAGE))),
        (["Transfer-Encoding: gzip"], gzip.compress(PAGE)),
        (["Transfer-Encoding: chunked"], chunked(PAGE)[:-2] + b"X-Sum: 1\r\n\r\n"),
        (["Transfer-Encoding: chunked"], chunked(PAGE).replace(b"\r\n", b' ;a="b"\r\n', 1)),
        (["Content-Encoding: gzip", "Content-Encoding: br"], brotli.compress(gzip.compress(PAGE))),
        (['Content-Encoding: "gzip"'], gzip.compress(PAGE)),
        (["Transfer-Encoding: chunked"], PAGE),
        (["Transfer-Encoding: chunked"], b"add\n" + PAGE),
    ],
)
def test_all_fields_of_encodings_count(tmp_path_factory, case):
    headers, content = case
    expected = content if content.endswith(PAGE) else PAGE

    found = texts(tmp_path_factory.mktemp("x"), response(content, *headers))

    assert found == [expected.decode()]


def test_chunks_that_a_crawler_has_cut_are_read_so_far(tmp_path):
    cut = response(chunked(PAGE)[:500], "Transfer-Encoding: chunked")

    (found,) = texts(tmp_path, cut)

    assert PAGE.decode().startswith(found.rstrip("\ufffd"))
    assert len(found) > 100
