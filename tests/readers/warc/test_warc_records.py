"""Pages of web archives as records."""

import base64
import gzip
import sys

import pytest

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere
from tests.each import each
from tests.readers.warc.archives import PAGES, byte_of, page, written


def test_pages_are_records(archive):
    rows = list(readers.read_warc(archive, file_key="file"))
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
    assert len(list(readers.read_warc(archive, None))) == 1 + 2 * PAGES
    assert {row["type"] for row in readers.read_warc(archive, ["request"])} == {"request"}
    with pytest.raises(errors.StreamArgumentError, match="must be a list of texts"):
        readers.read_warc(archive, "request")


def test_bytes_come_as_base64(archive):
    row = list(readers.read_warc(archive, binary=True))[1]
    assert base64.b64decode(row["base64"]) == ("page 1 é" * 41).encode("latin-1")


def test_the_records_around_a_damaged_one_are_read(archive):
    expected = list(readers.read_warc(archive, None))
    stream = readers.read_warc(archive, None).and_return()
    begins = [byte_of(stream) for _ in stream]
    content = bytearray(archive.read_bytes())
    for number in (3, 9):
        damaged = begins[number] + (20 if archive.suffix == ".gz" else 0)
        content[damaged : damaged + 40] = b"\xff" * 40
    archive.write_bytes(bytes(content) + b"\x1f\x8b\x08 no end")

    with pytest.raises(errors.StreamSourceError, match=rf"record at byte {begins[3]}: is"):
        list(readers.read_warc(archive, None))
    stream = readers.read_warc([archive, archive], None).and_return(on_error="quarantine")

    good = [row for number, row in enumerate(expected) if number not in {3, 9}]
    assert list(stream) == good * 2
    assert stream.errors == 6
    assert f"record at byte {begins[3]}: is" in stream.quarantined[0]["message"]


def test_records_without_a_url_or_an_http_head_keep_their_content(tmp_path):
    kind = "application/http; msgtype=response"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    old = written("response", "https://example.org/0", kind, b"a page of HTTP/0.9")
    whole = written("response", "https://example.org/1", kind, head + b"a page")
    unnamed = whole.replace(b"WARC-Target-URI: https://example.org/1\r\n", b"")
    (tmp_path / "a.warc").write_bytes(old + unnamed)

    rows = list(readers.read_warc(tmp_path / "a.warc"))

    assert [row["text"] for row in rows] == ["a page of HTTP/0.9", "a page"]
    assert [row["status"] for row in rows] == [None, 200]
    assert rows[1]["url"] is None


def test_the_end_of_a_gzip_member_ends_its_record(tmp_path):
    record = written("resource", "https://example.org/0", "text/plain", b"text")
    parts = [record.rstrip() + blank for blank in (b"\r\n", b"", b"\r\n\r\n")]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, parts)))

    assert [row["text"] for row in readers.read_warc(tmp_path / "a.warc.gz", None)] == ["text"] * 3


def test_a_position_is_the_byte_at_which_a_record_begins(archive):
    stream = readers.read_warc(archive).and_return()
    rows = [next(iter(stream)) for _ in range(PAGES)]
    position = stream.state_dict()["position"]
    assert (position["number"], position["within"]["item_index"]) == (0, 1)
    begin = byte_of(stream)
    assert archive.read_bytes()[begin:].startswith((b"WARC/1.", b"\x1f\x8b"))
    assert begin > archive.stat().st_size * 0.7
    assert rows[-1]["url"].endswith(str(PAGES - 1))


def test_a_truncated_file_is_an_error_after_its_remaining_content(archive):
    content, expected = archive.read_bytes(), list(readers.read_warc(archive, None))
    stream = readers.read_warc(archive, None).and_return()
    begins = [byte_of(stream) for _ in stream]
    ends = [*begins[1:], len(content)]
    for cut in set(range(1, len(content), 97)) - {0, *ends, *(end - 4 for end in ends)}:
        archive.write_bytes(content[:cut])
        found = []
        with pytest.raises(
            errors.StreamSourceError, match=r"pages\..*, record at byte \d+: is truncated"
        ):
            for row in readers.read_warc(archive, None):
                found.append(row)  # noqa: PERF402 - to see what came before the error
        assert found == expected[: sum(end <= cut for end in ends)]


def test_a_file_of_whole_records_is_whole(archive):
    content, expected = archive.read_bytes(), list(readers.read_warc(archive, None))
    stream = readers.read_warc(archive, None).and_return()
    for number, end in enumerate(byte_of(stream) for _ in stream):
        archive.write_bytes(content[:end])
        assert list(readers.read_warc(archive, None)) == expected[:number]


@pytest.mark.slow
def test_they_resume_anywhere(archive):
    assert_resumes_anywhere(lambda: readers.read_warc([archive, archive], None))
    assert_resumes_anywhere(lambda: readers.read_warc(archive).repeat(2))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dagster_dataops.readers.warc.warc_records", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[warc\]"):
        readers.read_warc("x.warc")


def test_records_that_were_packed_together_resume_anywhere(tmp_path):
    path = tmp_path / "together.warc.gz"
    records = [record for number in range(5) for record in page(number)]
    path.write_bytes(b"".join(gzip.compress(b"".join(records[at : at + 4])) for at in (0, 4, 8)))
    assert len(list(readers.read_warc(path))) == 5
    assert_resumes_anywhere(lambda: readers.read_warc(path, None))


def test_lines_may_end_with_a_line_feed_alone(tmp_path):
    path = tmp_path / "bare.warc"
    records = [record for number in range(4) for record in page(number)]
    heads = [record.partition(b"\r\n\r\n") for record in records]
    bare = [
        head.replace(b"\r\n", b"\n") + b"\n\n" + rest.removesuffix(b"\r\n\r\n") + b"\n\n"
        for head, _, rest in heads
    ]
    (tmp_path / "whole.warc").write_bytes(b"".join(records))
    expected = list(readers.read_warc(tmp_path / "whole.warc", None))
    for between in (b"", b"\n", b"\r\n\n"):
        path.write_bytes(between.join(bare))
        assert list(readers.read_warc(path, None)) == expected
        path.write_bytes(gzip.compress(between.join(bare)))
        assert list(readers.read_warc(path, None)) == expected
    assert_resumes_anywhere(lambda: readers.read_warc(path, None))


CODECS_OF_PYTHON = [
    "undefined", "idna", "punycode", "unicode-escape", "unicode_escape", "raw_unicode_escape",
    "utf-7", "utf_7", "utf-16-be-x", "hex", "base64", "rot13", "zip", "mbcs", "oem", "cp037",
    "charmap", "uu", "none", "", "''", "UTF-8;", "x" * 5000,
]  # fmt: skip


@pytest.fixture
def page_text(tmp_path):
    """Return a function that returns the text of one page, as the reader gives it."""

    def text_of(content, content_type):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode()
        record = written("response", "https://example.org/0", "application/http", head + content)
        (tmp_path / "page.warc").write_bytes(record)
        (row,) = readers.read_warc(tmp_path / "page.warc")
        return row["text"]

    return text_of


@each("label", CODECS_OF_PYTHON)
def test_a_label_that_is_no_charset_of_the_web_counts_as_none(label, page_text):
    page = r"<p>C:\new \u0041 a+AGE-b é</p>"
    assert page_text(page.encode(), f"text/html; charset={label}") == page


@each(
    "case",
    [
        ("x-sjis", "shift_jis", "日本"),
        ("windows-31j", "cp932", "日本①㈱髙"),
        ("shift_jis", "cp932", "日本①㈱髙"),
        ("ms932", "cp932", "①"),
        ("euc-kr", "cp949", "똠방각하"),
        ("ks_c_5601-1987", "cp949", "똠"),
        ("gb2312", "gbk", "朱镕基"),
        ("gbk", "gb18030", "朱镕基㐀"),
        ("big5", "big5hkscs", "㗎 香港"),
        ("ISO-8859-1", "cp1252", "“a” €"),
        ("us-ascii", "cp1252", "“a” €"),
        ("latin1", "cp1252", "é…"),
        ("iso-8859-9", "cp1254", "ğ €"),
        ("windows-1251", "cp1251", "Привет"),
        ("koi8-r", "koi8-r", "Привет"),
        ("macintosh", "mac-roman", "é"),
        ("utf8", "utf-8", "é日"),
        ("utf-16le", "utf-16-le", "é日"),
        (' "UTF-8" ', "utf-8", "é日"),
        ("cp949", "cp949", "똠"),
        ("latin-1", "latin-1", "é"),
    ],
)
def test_labels_mean_what_they_mean_in_browsers(case, page_text):
    label, codec, text = case
    assert page_text(text.encode(codec), f"text/html; charset={label}") == text


@each(
    "case",
    [
        ('<meta charset="gb2312">', "gbk", "你好"),
        ("<META CHARSET=windows-1251>", "cp1251", "Привет"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=x-sjis">', "cp932", "①"),
        ('<?xml version="1.0" encoding="EUC-KR"?>', "cp949", "똠"),
        ("<meta charset=undefined><meta charset=utf-8>", "utf-8", "é"),
        ('<!-- <meta charset="gbk"> --><meta charset="big5">', "big5", "香港"),
        ('<meta charset="utf-16">', "utf-8", "é"),
        ("<p>none</p>", "utf-8", "é日"),
    ],
)
def test_a_page_may_name_its_charset_itself(case, page_text):
    head, codec, text = case
    page = head + text
    assert page_text(page.encode(codec), "text/html") == page
    assert page_text(page.encode(codec), "") == page
    assert page_text(page.encode(), "text/html; charset=utf-8") == page


@each("codec", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_byte_order_mark_decides_first(codec, page_text):
    content = "é日".encode(codec)
    if codec == "utf-16-be":
        content = b"\xfe\xff" + content
    assert page_text(content, "text/html; charset=gb2312") == "é日"


def test_invalid_bytes_are_replaced(page_text):
    assert page_text(b"a\xffb", "text/html; charset=utf-8") == "a\ufffdb"
