"""Tests of dagster_dataops.datasets.durable_files."""

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.datasets.durable_files import (
    append_file,
    copy_durably,
    draft_of,
    make_folder,
    storage,
    write_all,
    write_durably,
)
from dagster_dataops.errors import StorageError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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
    assert names(tmp_path) == ["a.json"]


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
    assert names(target.parent) == ["b"]


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


def test_other_errors_are_raised(tmp_path):
    with pytest.raises(KeyError), storage(tmp_path, "do it"):
        raise KeyError


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
