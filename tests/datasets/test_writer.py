"""Tests of files that are written: atomically, durably, under which names."""

import copy
import os
import tempfile
import textwrap
from pathlib import Path
from unittest.mock import patch

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.datasets.durable_files import (
    append_file,
    begin_sync,
    copy_durably,
    draft_of,
    make_folder,
    write_all,
    write_durably,
)
from dagster_dataops.datasets.published_files import parts_of
from dagster_dataops.errors import InputError, StorageError
from tests.datasets.exporters.folders import names_in
from tests.nodes import JsonlWriter, write_records

RECORDS = st.lists(st.dictionaries(st.text(max_size=3), st.integers(-5, 5), max_size=2))


@given(RECORDS)
def test_written_records_are_read_back_and_the_handle_is_correct(records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "below" / "a.jsonl"
        dataset = write_records(path, records, "list")
        content = path.read_bytes()

        assert dataset.read() == records
        assert dataset.rows == len(records)
        assert dataset.size_bytes == len(content)
        assert dataset.fingerprint == f"xxh3:{xxhash.xxh3_128_hexdigest(content)}"


def test_the_records_given_are_not_changed(tmp_path):
    records = [{"a": (1, 2), "b": {"c": [None]}}]
    before = copy.deepcopy(records)

    write_records(tmp_path / "a.jsonl", records, "list")

    assert records == before


@pytest.mark.parametrize("intruder", ["text", 1, None, ["nested"], ("a", 1)])
def test_an_element_that_is_not_a_dict_is_refused_with_its_position(tmp_path, intruder):
    kind = type(intruder).__name__

    with pytest.raises(InputError, match=f"record 1 is a {kind}, not a dict"):
        write_records(tmp_path / "a.jsonl", [{}, intruder], "list")


def test_a_value_that_json_cannot_hold_is_refused_with_its_position_and_path(tmp_path):
    with pytest.raises(InputError, match="record 2: key 'tags' holds a set"):
        write_records(tmp_path / "a.jsonl", [{}, {}, {"tags": {1}}], "list")


def test_a_refused_write_leaves_the_previous_file_and_no_draft(tmp_path):
    path = tmp_path / "a.jsonl"
    write_records(path, [{"old": True}], "list")

    with pytest.raises(InputError):
        write_records(path, [{"new": True}, None], "list")

    assert path.read_text() == '{"old":true}\n'
    assert names_in(tmp_path) == ["a.jsonl"]


def test_the_same_records_again_leave_the_file_as_it_is(tmp_path):
    path = tmp_path / "a.jsonl"
    first = write_records(path, [{"a": 1}], "list")
    before = path.stat()

    assert write_records(path, [{"a": 1}], "list") == first
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert names_in(tmp_path) == ["a.jsonl"]

    write_records(path, [{"a": 2}], "list")
    assert path.read_text() == '{"a":2}\n'


def test_an_error_in_the_source_of_the_records_leaves_no_draft(tmp_path):
    def broken():
        yield {"a": 1}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_records(tmp_path / "a.jsonl", broken(), "list")

    assert names_in(tmp_path) == []


def test_the_place_shows_nothing_until_it_is_published(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("before")

    with JsonlWriter(path) as writer:
        writer.write(b'{"a":1}\n{"a":2}\n', 2)
        assert path.read_text() == "before"
        dataset = writer.publish()

    assert dataset.read() == [{"a": 1}, {"a": 2}]
    assert names_in(tmp_path) == ["a.jsonl"]


def test_a_disk_that_refuses_is_a_storage_error_that_names_the_path(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match=r"file.*cannot create the folder"):
        JsonlWriter(tmp_path / "file" / "a.jsonl")


def test_a_full_disk_is_a_storage_error_and_leaves_no_draft(run_python, tmp_path):
    path = tmp_path / "full" / "full.jsonl"
    run_python(
        textwrap.dedent(
            f"""
            import resource, signal
            from pathlib import Path
            from dagster_dataops.datasets.writer import write_records
            from dagster_dataops.errors import StorageError

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
            try:
                write_records(Path({str(path)!r}), [{{"t": "x" * 100}}] * 1000, "list")
            except StorageError as error:
                assert "full.jsonl" in str(error)
            else:
                raise AssertionError
            """
        )
    )
    assert names_in(path.parent) == []


@pytest.mark.parametrize("supported", [True, False])
def test_a_linked_draft_has_the_bytes_rows_and_fingerprint_of_a_written_one(
    tmp_path, monkeypatch, supported
):
    lines = b'{"a":1}\n{"a":2}\n'
    source = tmp_path / "segment"
    source.write_bytes(lines)
    if not supported:
        monkeypatch.setattr(os, "link", _refused)
    with JsonlWriter(tmp_path / "linked.jsonl") as writer:
        writer.link(source)
        writer.write(lines[:8])
        writer.write(lines[8:])
        linked = writer.publish()
    written = write_records(tmp_path / "written.jsonl", [{"a": 1}, {"a": 2}], "records")
    assert linked.path.read_bytes() == lines
    assert linked.path.samefile(source) is supported
    assert (linked.rows, linked.size_bytes, linked.fingerprint) == (2, 16, written.fingerprint)


def test_a_linked_draft_that_is_not_finished_leaves_only_its_source(tmp_path):
    source = tmp_path / "segment"
    source.write_bytes(b"{}\n")
    with pytest.raises(KeyError), JsonlWriter(tmp_path / "result.jsonl") as writer:
        writer.link(source)
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["segment"]
    assert source.read_bytes() == b"{}\n"


def _refused(*_, **__):
    raise PermissionError(1, "Operation not permitted")


@given(st.binary(max_size=60), st.integers(1, 7))
def test_every_byte_is_written_though_the_system_stops_short(data, step):
    real = os.write
    with (
        tempfile.TemporaryFile() as file,
        patch("os.write", lambda descriptor, block: real(descriptor, bytes(block)[:step])),
    ):
        write_all(file.fileno(), data)
        file.seek(0)

        assert file.read() == data


def test_writing_durably_replaces_the_file_and_leaves_no_draft(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("before")

    write_durably(path, b"after")

    assert path.read_text() == "after"
    assert names_in(tmp_path) == ["a.json"]


def test_a_failed_write_leaves_the_previous_content(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("before")

    full = OSError(28, "No space left on device")
    with patch("os.fsync", side_effect=full), pytest.raises(StorageError, match="No space left"):
        write_durably(path, b"after")

    assert path.read_text() == "before"


def test_copying_makes_the_folder_and_replaces_the_target(tmp_path):
    source, target = tmp_path / "a", tmp_path / "new" / "folder" / "b"
    source.write_bytes(b"x" * 100_000)

    copy_durably(source, target)
    source.write_bytes(b"y")
    copy_durably(source, target)

    assert target.read_bytes() == b"y"
    assert names_in(target.parent) == ["b"]


def test_appending_starts_at_the_current_positions(tmp_path):
    (tmp_path / "a").write_bytes(b"0123")
    with (tmp_path / "a").open("rb", buffering=0) as reader, (tmp_path / "b").open("wb") as writer:
        reader.read(2)
        append_file(reader.fileno(), writer.fileno())

    assert (tmp_path / "b").read_bytes() == b"23"


def test_a_folder_in_the_way_of_a_file_is_a_storage_error(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match="cannot create the folder") as caught:
        make_folder(tmp_path / "file" / "folder")

    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to], ids=["symbolic", "hard"])
def test_a_link_in_place_of_a_draft_is_not_followed(tmp_path, link):
    (tmp_path / "source").write_bytes(b"new")
    precious = tmp_path / "precious"
    precious.write_text("precious")

    for path, write in [
        (tmp_path / "written", lambda path: write_durably(path, b"new")),
        (tmp_path / "copied", lambda path: copy_durably(tmp_path / "source", path)),
    ]:
        link(draft_of(path), precious)
        write(path)
        assert path.read_bytes() == b"new"
        assert not path.is_symlink()
    assert precious.read_text() == "precious"


def test_the_parts_of_a_result_lie_beside_it_in_a_folder_with_the_name_of_the_node() -> None:
    assert parts_of(Path("root/docs/docs_results.jsonl")) == Path("root/docs/docs_parts")


def test_a_large_file_is_complete_though_its_sync_begins_early(tmp_path):
    line = b'{"text": "' + b"x" * 99_987 + b'"}\n'
    with JsonlWriter(tmp_path / "large.jsonl") as writer:
        for _ in range(200):  # 20 MB
            writer.write(line)
        dataset = writer.publish()
    assert dataset.path.read_bytes() == line * 200
    assert dataset.size_bytes == len(line) * 200


def test_the_system_may_refuse_to_begin_a_sync():
    reading, writing = os.pipe()
    begin_sync(writing, 0, 1)  # no file
    os.close(reading)
    os.close(writing)
