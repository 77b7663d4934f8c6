"""Files below a folder."""

import os

import pytest

from dagster_dataops import errors, list_files, read_jsonl


@pytest.fixture
def folder(tmp_path):
    for name in ["part10.txt", "part2.txt", "sub/a.txt", "sub/.hidden", "b.csv"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    (tmp_path / "sub" / "circle").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    return tmp_path


def names(folder, pattern=None):
    return [os.path.relpath(path, folder) for path in list_files(folder, pattern)]


def test_files_are_listed_in_natural_order_links_followed(folder):
    assert names(folder) == [
        "b.csv",
        "link/.hidden",
        "link/a.txt",
        "part2.txt",
        "part10.txt",
        "sub/.hidden",
        "sub/a.txt",
    ]


def test_patterns_are_matched_against_the_whole_path(folder):
    assert names(folder, "*.csv") == ["b.csv"]
    assert names(folder, "*/sub/*") == ["sub/.hidden", "sub/a.txt"]
    assert names(folder, "b.csv") == []
    assert names(folder, "") == []


def test_a_file_is_listed_alone_and_a_missing_folder_fails_when_read(folder):
    path = str(folder / "b.csv")
    assert list(list_files(path)) == [path]
    stream = list_files(folder / "none").and_return()
    with pytest.raises(errors.DataPipelineError, match="no such file or folder"):
        list(stream)


def test_a_path_goes_straight_into_a_reader(folder):
    (folder / "r.jsonl").write_text('{"a":1}\n')
    assert list(list_files(folder, "*r.jsonl").yield_from(read_jsonl)) == [{"a": 1}]
