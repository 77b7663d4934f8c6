"""Tests of `read_files` that names files instead of reading them."""

import json

import fsspec
import pytest

from dagster_dataops import config, data, pipeline, readers
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


def passed(stream, root):
    """Return the records that a pipeline passes on from a stream."""
    with pipeline("named") as ppl:
        ppl.kept = data.filters.Field("file", op="!=", value=None)
    with config.temporary(data_process_path=root):
        return ppl(stream)


def test_a_file_that_cannot_be_named_is_written_beside_the_result_and_the_others_go_on(folder):
    fsspec.filesystem("memory").pipe("/named/x.pdf", PDF)
    (folder / "in" / "out.pdf").symlink_to(folder / "out.pdf")
    (folder / "in" / "nowhere.pdf").symlink_to(folder / "in" / "none.pdf")
    for number, (source, named, reasons) in enumerate(
        (
            ("in", 2, ["nowhere.pdf: cannot be read: No such", "out.pdf: is a link out of"]),
            ("in/**/*.pdf", 2, ["nowhere.pdf: cannot be read", "out.pdf: is a link out of"]),
            (["out.pdf", "none.pdf", "in/a.pdf"], 2, ["none.pdf: cannot be read: No such file"]),
            (["memory://named/none.pdf", "memory://named/x.pdf"], 1, ["there is no such file"]),
        )
    ):
        stream = readers.read_files(source, content="reference").and_return(on_error="quarantine")
        root = folder / f"root{number}"
        assert len(passed(stream, root)) == named
        (failed,) = root.rglob("source/*/*_error.jsonl")
        messages = [json.loads(line)["message"] for line in failed.read_text().splitlines()]
        assert len(messages) == len(reasons)
        assert all(map(str.__contains__, messages, reasons))


def test_a_list_of_which_no_file_can_be_named_stops(folder):
    stream = readers.read_files(["none.pdf", "gone.pdf"], content="reference")
    with pytest.raises(StreamSourceError, match=r"gone\.pdf: cannot be read: No such file"):
        passed(stream.and_return(on_error="skip"), folder / "root")
