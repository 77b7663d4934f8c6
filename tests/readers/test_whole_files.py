"""Tests of dagster_dataops.readers.whole_files."""

import base64
import gzip

import pytest

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    for name, content in {
        "2.md": b"two\r\n",
        "10.md": "zehn é".encode(),
        "sub/1.txt": b"",
        "sub/x.bin": b"\xff\x00",
        "_SUCCESS": b"",
    }.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return made


def test_files_are_records_in_natural_order(folder):
    assert list(readers.read_files(folder, "*.md")) == [
        {"path": f"{folder}/2.md", "text": "two\r\n", "size": 5},
        {"path": f"{folder}/10.md", "text": "zehn é", "size": 7},
    ]
    assert list(readers.read_files(folder, "*.none")) == []


def test_bytes_come_as_base64(folder):
    found = list(readers.read_files(folder, binary=True))
    assert [base64.b64decode(one["base64"]) for one in found][-1] == b"\xff\x00"
    assert [one["size"] for one in found] == [5, 7, 0, 2]


def test_a_file_that_is_not_text_is_named_and_can_be_skipped(folder):
    with pytest.raises(errors.StreamSourceError, match=r"x\.bin: is not utf-8 text.*binary=True"):
        list(readers.read_files(folder))
    stream = readers.read_files(folder).and_return(on_error="quarantine")
    assert len(list(stream)) == 3
    assert [one["item"] for one in stream.quarantined] == [f"{folder}/sub/x.bin"]


def test_a_file_that_is_too_long_is_named(folder):
    with pytest.raises(errors.StreamSourceError, match=r"10\.md: has more than max_bytes=5 bytes"):
        list(readers.read_files(folder, "*.md", max_bytes=5))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_they_resume_anywhere(folder, on_error):
    assert_resumes_anywhere(
        lambda: (
            readers.read_files(folder, binary=on_error == "raise")
            .repeat(2)
            .and_return(on_error=on_error)
        )
    )


def test_compressed_files_are_decompressed_or_read_unchanged(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"text"))
    assert list(readers.read_files(path)) == [{"path": str(path), "text": "text", "size": 4}]
    [packed] = readers.read_files(path, binary=True, compression=None)
    assert base64.b64decode(packed["base64"]) == path.read_bytes()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(errors.StreamSourceError, match="is truncated"):
        list(readers.read_files(path))
