"""Tests of `shape.AddFileFacts`: references tell which content they name."""

from hashlib import sha256

import pytest

from dagster_dataops import FileReference, config, data, data_register, pipeline

READ: list[str] = []


def note(name):
    READ.append(name)


@data_register("data.file_facts", _concurrency_mode="single", _reuse_outcomes=True)
def read_text(record):
    note(record["file"]["file"])
    return {"text": FileReference.of(record["file"]).read().decode()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"page {number}")
    monkeypatch.chdir(tmp_path)
    READ.clear()
    with config.temporary(data_process_path=tmp_path / "root", data_process_resume=True):
        yield tmp_path


@pytest.mark.parametrize("value", ["1.txt", {"file": "1.txt", "size": 6}])
def test_paths_and_references_become_references_with_facts(folder, value):
    [found] = data.shape.AddFileFacts()([{"file": value, "n": 1}])
    time = (folder / "1.txt").stat().st_mtime_ns
    facts = {"file": "1.txt", "size": 6, "media_type": "text/plain"}
    assert found == {"file": {**facts, "version": f"modified:{time}"}, "n": 1}
    [found] = data.shape.AddFileFacts(digest=True, output_key="known")([{"file": value}])
    assert found["file"] == value
    assert found["known"] == {**facts, "digest": f"sha256:{sha256(b'page 1').hexdigest()}"}


def test_only_records_with_replaced_files_are_made_again(folder):
    with pipeline("p") as ppl:
        ppl.known = data.shape.AddFileFacts(_concurrency_mode="single")
        ppl.text = read_text()
    records = [{"file": f"{number}.txt"} for number in range(3)]
    assert [row["text"] for row in ppl(records)] == ["page 0", "page 1", "page 2"]
    (folder / "1.txt").write_text("another page")
    READ.clear()
    assert [row["text"] for row in ppl(records)] == ["page 0", "another page", "page 2"]
    assert READ == ["1.txt"]


def test_a_file_that_is_missing_or_another_one_is_an_error_of_its_record(folder):
    with pipeline("p") as ppl:
        ppl.known = data.shape.AddFileFacts(_ignore_errors=True, _concurrency_mode="single")
    records = [{"file": "9.txt"}, {"file": {"file": "1.txt", "size": 9}}, {"file": "1.txt"}]
    assert [row["file"]["file"] for row in ppl(records)] == ["1.txt"]
