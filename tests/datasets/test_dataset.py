"""Tests of dagster_dataops.datasets.dataset."""

import os
import pickle
import tempfile
from dataclasses import FrozenInstanceError
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.hashing.file_digests import content_digest

RECORDS = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2))


def written(path: Path, content: bytes) -> JsonlDataset:
    path.write_bytes(content)
    return JsonlDataset.of_file(path)


@given(RECORDS, st.booleans(), st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \n"]), st.booleans())
def test_records_are_read_with_any_line_ending(records, bom, separator, final):
    content = separator.join(map(orjson.dumps, records)) + (separator if final else b"")
    with tempfile.TemporaryDirectory() as folder:
        dataset = written(Path(folder) / "a.jsonl", (b"\xef\xbb\xbf" if bom else b"") + content)

        assert dataset.read() == records


def test_a_handle_holds_no_rows_and_counts_none(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n{"a":2}\n')

    assert (dataset.rows, dataset.fingerprint, dataset.size_bytes) == (None, None, 16)
    assert len(pickle.dumps(dataset)) < 500


def test_a_handle_cannot_be_changed_and_survives_pickle(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b"{}\n")

    assert pickle.loads(pickle.dumps(dataset)) == dataset
    with pytest.raises(FrozenInstanceError):
        dataset.rows = 3


def test_a_relative_path_is_made_absolute_when_the_handle_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset = written(Path("a.jsonl"), b'{"a":1}')

    monkeypatch.chdir("/")

    assert dataset.path == tmp_path / "a.jsonl"
    assert dataset.read() == [{"a": 1}]


def test_the_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.jsonl").write_text('{"a":1}')

    assert JsonlDataset.of_file("~/a.jsonl").read() == [{"a": 1}]


def test_a_missing_file_is_refused_when_the_handle_is_made(tmp_path):
    with pytest.raises(InputError, match=r"missing\.jsonl: there is no such file"):
        JsonlDataset.of_file(tmp_path / "missing.jsonl")


@pytest.mark.parametrize("bad", [b"[1]", b"{", b'"text"', b'{"a": NaN}', b"\xff"])
def test_a_bad_line_is_named_by_file_and_number(tmp_path, bad):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n\n' + bad + b'\n{"a":2}\n')

    with pytest.raises(InputError, match=r"a\.jsonl, line 3"):
        dataset.read()


def test_lines_before_a_bad_one_are_given_out_first(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n{"a":2}\nnonsense')

    assert dataset.head(2) == [{"a": 1}, {"a": 2}]


def test_head_takes_no_more_than_there_is(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n')

    assert dataset.head(0) == []
    assert dataset.head(9) == [{"a": 1}]


def test_a_dataset_can_be_read_twice(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n{"a":2}\n')

    assert list(dataset) == list(dataset)


def test_the_fingerprint_is_the_identity_where_there_is_one(tmp_path):
    path = tmp_path / "a.jsonl"
    path.touch()
    digest = content_digest(path)

    assert JsonlDataset(path, 0, fingerprint=digest).identity == digest
    with pytest.raises(InputError, match="has other content than it was written with"):
        JsonlDataset(path, 0, fingerprint="xxh3:1").check_content()


def test_without_a_fingerprint_a_changed_file_has_another_identity(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n')
    before = dataset.identity

    os.utime(dataset.path, ns=(1, 1))

    assert dataset.identity != before


def test_a_file_rewritten_with_its_old_size_and_time_has_another_identity(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"n":1}\n')
    os.utime(dataset.path, ns=(5, 5))
    before = dataset.identity

    dataset.path.write_bytes(b'{"n":2}\n')
    os.utime(dataset.path, ns=(5, 5))

    assert dataset.stamp()[1:3] == (8, 5)
    assert dataset.identity != before


def test_a_file_that_vanished_is_an_input_error(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b"{}\n")
    dataset.path.unlink()

    with pytest.raises(InputError, match="cannot be read"):
        dataset.stamp()
    with pytest.raises(InputError, match="no such file"):
        dataset.read()


def test_a_published_file_that_was_cut_short_is_refused(tmp_path):
    dataset = written(tmp_path / "a.jsonl", b'{"a":1}\n{"a":2}\n')
    digest = content_digest(dataset.path)
    known = JsonlDataset(dataset.path, dataset.size_bytes, 2, digest)
    assert known.identity == digest

    dataset.path.write_bytes(b'{"a":1}\n')

    with pytest.raises(InputError, match="has 8 bytes, not the 16 it was written with"):
        _ = known.identity


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a\0b", "NUL"),
        ("a\udcff", "not UTF-8 text"),
        ("~nobody-of-this-name/a.jsonl", "home directory"),
        ("/dev/null", "a pipe or a device"),
    ],
)
def test_an_impossible_path_is_an_input_error(path, reason):
    with pytest.raises(InputError, match=reason) as caught:
        JsonlDataset.of_file(path)
    str(caught.value).encode()


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InputError, match="a pipe or a device; write it to a file first"):
        JsonlDataset.of_file(tmp_path / "pipe")
