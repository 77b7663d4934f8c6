import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.foundation.places.opening import opened, state_at
from dagster_dataops.foundation.places.parted_file import PartedFile
from dagster_dataops.foundation.places.range_source import read_range


@given(st.binary(max_size=60), st.integers(0, 70), st.integers(0, 70), st.integers(1, 7))
def test_a_range_is_read_whole_though_the_system_stops_short(data, start, length, step):
    real = os.pread
    with (
        tempfile.TemporaryFile(buffering=0) as file,
        patch("os.pread", lambda d, count, at: real(d, min(count, step), at)),
    ):
        file.write(data)

        assert read_range(file.fileno(), start, length) == data[start : start + length]


def parted(folder, parts):
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts):
        (folder / f"docs_results-{number:05d}.jsonl").write_bytes(part)
    return folder


@given(
    st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=12),
    st.integers(0, 110),
    st.integers(0, 110),
)
def test_a_range_of_a_file_in_parts_is_that_of_the_whole(parts, start, length):
    with tempfile.TemporaryDirectory() as folder, opened(parted(Path(folder), parts)) as source:
        whole = b"".join(parts)

        assert read_range(source, start, length) == whole[start : start + length]


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path):
    parted(tmp_path, [b"%d\n" % number for number in range(12)])
    (tmp_path / "docs_results-00011.jsonl").rename(tmp_path / "docs_results-000011.jsonl")
    (tmp_path / ".DS_Store").touch()

    assert PartedFile(tmp_path).read(0, 100) == b"".join(b"%d\n" % n for n in range(12))


@pytest.mark.parametrize("unfit", ["missing", "twice", "other", "named"])
def test_a_folder_of_anything_but_parts_is_no_file(tmp_path, unfit):
    parted(tmp_path, [b"a\n", b"b\n", b"c\n"])
    if unfit == "missing":
        (tmp_path / "docs_results-00001.jsonl").unlink()
    else:
        names = {"other": "notes.txt", "named": "pages_results-00003.jsonl"}
        name = names.get(unfit, "docs_results-000002.jsonl")
        (tmp_path / name).write_text("")

    with pytest.raises(IsADirectoryError):
        PartedFile(tmp_path)


def test_an_edit_of_any_part_changes_the_state(tmp_path):
    parted(tmp_path, [b"a\n", b"b\n"])
    before = state_at(tmp_path)
    first = tmp_path / "docs_results-00000.jsonl"
    os.utime(first, ns=(0, before.modified_ns + 1))

    assert state_at(tmp_path) != before
    assert before.size == 4
