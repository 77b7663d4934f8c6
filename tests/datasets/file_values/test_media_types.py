"""Tests of media types by content and by name."""

import io
import zipfile

from dagster_dataops.files import bytes_and_path, same_type, type_of_content, type_of_name
from tests.each import each

_OFFICE = "application/vnd.openxmlformats-officedocument."


def zipped(*names: str, stored: bytes = b"") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, stored or "text")
    return content.getvalue()


@each(
    "case",
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"RIFF\0\0\0\0AVI LIST", "video/x-msvideo"),
        (b"FORM\0\0\0\0AIFFCOMM", "audio/aiff"),
        (b"xxxxxxxxWAVE", None),
        (b"\0\0\0\x20ftypisom", "video/mp4"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"\x1aE\xdf\xa3\x9fB\x82\x84webm", "video/webm"),
        (b"fLaC", "audio/flac"),
        (b"OggS", "audio/ogg"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        ("<html>".encode("utf-16"), None),
        ("a,b\n1,2".encode("utf-16"), None),
        (b"%PDF-1.7", "application/pdf"),
        (b"\n%PDF-1.7", "application/pdf"),
        (b"<!DOCTYPE html><p>", "text/html"),
        (b"\xef\xbb\xbf <!-- x --> <html>", "text/html"),
        (b"<?xml version='1.0'?><svg>", "image/svg+xml"),
        (b"<?xml version='1.0'?><a/>", "application/xml"),
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"plain text", None),
        (b"# Markdown with <html> in it", None),
        (b"", None),
        (zipped("a.txt"), "application/zip"),
        (zipped("[Content_Types].xml", "word/document.xml"), f"{_OFFICE}wordprocessingml.document"),
        (zipped("ppt/presentation.xml"), f"{_OFFICE}presentationml.presentation"),
        (zipped("mimetype", stored=b"application/epub+zip"), "application/epub+zip"),
    ],
)
def test_the_content_shows_its_media_type(case):
    content, media_type = case
    assert type_of_content(content) == media_type


@each(
    "case",
    [
        ("a.png", "image/png"),
        ("folder/A.JPG", "image/jpeg"),
        ("https://host/a.pdf?x=1.png", "application/pdf"),
        ("shard.tar#000.opus", "audio/ogg"),
        ("files/ab/cdef", None),
        ("a.unknown", None),
    ],
)
def test_the_name_tells_a_media_type(case):
    name, media_type = case
    assert type_of_name(name) == media_type


def test_names_of_one_media_type_are_the_same():
    assert same_type("audio/x-wav", "audio/wav")
    assert same_type("IMAGE/JPG; q=1", "image/jpeg")
    assert not same_type("image/png", "image/jpeg")


@each(
    "case",
    [
        ("video/mp4", ".mp4"),
        ("audio/mp4", ".m4a"),
        ("video/quicktime", ".mov"),
        ("video/webm", ".webm"),
        ("audio/x-wav", ".wav"),
        ("image/jpeg; q=1", ".jpg"),
        ("application/x-unknown", ""),
    ],
)
def test_a_name_without_ending_gets_that_of_its_media_type(tmp_path, case):
    media_type, ending = case
    (tmp_path / "made").write_bytes(b"content")
    reference = {"file": str(tmp_path / "made"), "media_type": media_type}
    assert bytes_and_path(reference)["path"] == f"made{ending}"
