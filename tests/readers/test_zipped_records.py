"""``read_zipped_records``: the files in zip archives."""

import zipfile

import pytest

from dagster_dataops import read_zipped_records
from dagster_dataops.errors import StreamDefinitionError, StreamSourceError
from dagster_dataops.testing import assert_resumes_anywhere


def archive(path, texts, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, text in texts.items():
            file.writestr(name, text)
    return path


@pytest.fixture
def texts():
    return {"b.txt": "second ü", "folder/": "", "folder/a.txt": "", "c": "x" * 1000}


def test_each_file_is_a_text_in_the_order_of_the_archive(tmp_path, texts):
    path = archive(tmp_path / "a.zip", texts)
    assert list(read_zipped_records(path)) == ["second ü", "", "x" * 1000]
    found = list(read_zipped_records(str(path), encoding=None))
    assert found[0] == "second ü".encode()


def test_several_archives_are_read_in_natural_order_and_resume_anywhere(tmp_path, texts):
    for number in (10, 2):
        archive(tmp_path / f"{number}.zip", {**texts, "number": str(number)})
    found = list(read_zipped_records(tmp_path))
    assert [found[3], found[7]] == ["2", "10"]
    assert_resumes_anywhere(lambda: read_zipped_records(tmp_path))


def test_an_entry_that_cannot_be_read_is_a_failed_item(tmp_path, texts):
    path = archive(tmp_path / "a.zip", {**texts, "bad": b"\xff"}, zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"second", b"sec0nd"))
    stream = read_zipped_records(path).and_return(on_error="quarantine")
    assert list(stream) == ["", "x" * 1000]
    messages = [one["message"] for one in stream.quarantined]
    assert "a.zip, entry 'b.txt': cannot be read: Bad CRC-32" in messages[0]
    assert "entry 'bad': cannot be read: 'utf-8' codec" in messages[1]
    with pytest.raises(StreamSourceError, match="Bad CRC-32"):
        list(read_zipped_records(path))


def test_a_file_that_is_no_archive_ends_the_stream_or_is_skipped(tmp_path, texts):
    archive(tmp_path / "1.zip", texts)
    (tmp_path / "2.zip").write_text("no archive")
    archive(tmp_path / "3.zip", texts)
    with pytest.raises(StreamSourceError, match=r"2\.zip: cannot be read as a zip archive"):
        list(read_zipped_records(tmp_path))
    stream = read_zipped_records(tmp_path).and_return(on_error="skip")
    assert len(list(stream)) == 6
    assert stream.errors == 1
    with pytest.raises(StreamSourceError, match=r"none\.zip"):
        list(read_zipped_records(tmp_path / "none.zip"))


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(StreamDefinitionError, match="is a URL; read_text and read_jsonl"):
        read_zipped_records("https://example.com/a.zip")
    with pytest.raises(StreamDefinitionError, match="encoding"):
        read_zipped_records("a.zip", encoding="none")
