"""The charset of pages of web archives."""

import pytest

from dagster_dataops import readers
from tests.each import each
from tests.readers.warc.archives import written

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
