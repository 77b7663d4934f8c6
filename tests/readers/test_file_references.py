"""Tests of `read_files` that names files instead of reading them."""

import fsspec
import pytest

from dagster_dataops import readers
from dagster_dataops.errors import StreamDefinitionError, StreamSourceError
from dagster_dataops.files import FileChangedError, FileReference

PDF = b"%PDF-1.7 text"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.pdf").write_bytes(PDF)
    (tmp_path / "in" / "sub" / "b.pdf").write_bytes(PDF + b"2")
    (tmp_path / "out.pdf").write_bytes(PDF)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(path, *arguments, **options):
    found = readers.read_files(path, *arguments, content="reference", **options)
    return [record["file"]["file"] for record in found]


def test_files_are_named_with_size_type_and_version(folder):
    first, second = readers.read_files("in", content="reference")
    assert first["file"].pop("version").startswith("modified:")
    assert first == {"file": {"file": "in/a.pdf", "size": 13, "media_type": "application/pdf"}}
    assert FileReference.of(second["file"]).read() == PDF + b"2"


def test_folders_patterns_and_lists_of_paths_and_urls_name_files(folder):
    fsspec.filesystem("memory").pipe("/named/x.pdf", PDF)
    assert names("in/**/*.pdf") == ["in/a.pdf", "in/sub/b.pdf"]
    assert names("in", "*/sub/*") == ["in/sub/b.pdf"]
    assert names(["out.pdf", "memory://named/x.pdf"]) == ["out.pdf", "memory://named/x.pdf"]


def test_a_digest_takes_the_place_of_the_version(folder):
    [record] = readers.read_files("in/a.pdf", content="reference", digest=True)
    assert record["file"]["digest"].startswith("sha256:")
    assert "version" not in record["file"]


def test_a_replaced_file_is_not_the_one_that_was_named(folder):
    [record] = readers.read_files("in/a.pdf", content="reference")
    (folder / "in" / "a.pdf").write_bytes(PDF[::-1])
    with pytest.raises(FileChangedError):
        FileReference.of(record["file"]).read()


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_not(folder):
    (folder / "in" / "inside.pdf").symlink_to(folder / "in" / "a.pdf")
    assert len(names("in")) == 3
    (folder / "in" / "link.pdf").symlink_to(folder / "out.pdf")
    for path in ("in", "in/*.pdf", str(folder / "in")):
        with pytest.raises(StreamSourceError, match="is a link out of its folder"):
            names(path)
    assert names("in/link.pdf") == ["in/link.pdf"]
    stream = readers.read_files("in", content="reference").and_return(on_error="skip")
    assert len(list(stream)) == 3


def test_a_file_over_the_limit_is_refused(folder):
    with pytest.raises(StreamSourceError, match="more than max_bytes=13 bytes"):
        names("in", max_bytes=13)


def test_a_compressed_file_is_named_as_it_is(folder):
    (folder / "x.gz").write_bytes(b"\x1f\x8b no more")
    [record] = readers.read_files("x.gz", content="reference")
    assert record["file"]["media_type"] == "application/gzip"


@pytest.mark.parametrize(
    "options",
    [{"content": "bytes"}, {"content": "reference", "binary": True}, {"digest": True}],
)
def test_options_that_do_not_fit_are_refused(options):
    with pytest.raises(StreamDefinitionError):
        readers.read_files("in", **options)
