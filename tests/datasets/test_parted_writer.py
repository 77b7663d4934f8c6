"""Results that are written in parts: what is in their folders at each moment."""

import errno
import os
from pathlib import Path

import pytest

from dagster_dataops.byte_ranges import PartedFile
from dagster_dataops.concurrency.background import deleting
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.parted_writer import PartedWriter, is_intact, remove_other_parts
from dagster_dataops.errors import StorageError
from tests.faults.failing import failing


def names(folder: Path) -> list[str]:
    deleting.finish()
    return sorted(path.name for path in folder.iterdir())


def written(path: Path, blocks: list[bytes], records: int = 3) -> str:
    """Write a result and put it in place; return the version of its parts."""
    with PartedWriter(path, path.parent / "docs_parts", records) as writer:
        for block in blocks:
            writer.write(block, block.count(b"\n"))
        writer.finish()
    draft_of(path).replace(path)
    return writer.version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "docs_results.jsonl"


@pytest.mark.parametrize(
    "blocks",
    [
        [b"1\n2\n3\n4\n5\n6\n7\n"],
        [b"1\n", b"2\n", b"3\n", b"4\n", b"5\n", b"6\n", b"7\n"],
        [b"", b"1\n2\n", b"3\n4\n5\n6\n", b"7\n", b""],
    ],
)
def test_the_blocks_that_are_written_make_no_difference(path: Path, blocks: list[bytes]) -> None:
    written(path, blocks)
    texts = [part.read_bytes() for part in PartedFile.at(path).paths]
    assert texts == [b"1\n2\n3\n", b"4\n5\n6\n", b"7\n"]


def test_a_full_last_part_is_followed_by_no_empty_one(path: Path) -> None:
    written(path, [b"1\n2\n3\n", b"4\n5\n6\n"])
    assert PartedFile.at(path).names == ("docs_results-00000.jsonl", "docs_results-00001.jsonl")


def test_equal_parts_are_left_as_they_are(path: Path) -> None:
    version = written(path, [b"1\n2\n3\n4\n"])
    before = {part: part.stat() for part in PartedFile.at(path).paths}
    assert written(path, [b"1\n", b"2\n3\n4\n"]) == version
    assert {part: part.stat() for part in PartedFile.at(path).paths} == before


def test_damaged_parts_are_replaced(path: Path) -> None:
    version = written(path, [b"1\n2\n3\n4\n"])
    PartedFile.at(path).paths[0].write_bytes(b"1\n2\n9\n")
    assert not is_intact(path, version)
    assert written(path, [b"1\n2\n3\n4\n"]) == version
    assert is_intact(path, version)


@pytest.mark.parametrize("call", ["fsync", "open", "symlink"])
def test_a_disk_that_refuses_leaves_the_result_before(path: Path, call: str) -> None:
    version = written(path, [b"1\n2\n3\n4\n"])
    if call == "symlink":
        with pytest.MonkeyPatch.context() as patch, pytest.raises(StorageError):
            patch.setattr(os, "symlink", _refuse)
            written(path, [b"5\n"])
    else:
        with (
            failing(call, "docs_results-00001.jsonl.draft", errno.ENOSPC),
            pytest.raises(StorageError),
        ):
            written(path, [b"5\n6\n7\n8\n"])
    assert is_intact(path, version)
    assert not os.path.lexists(draft_of(path))
    remove_other_parts(path.parent / "docs_parts", version)
    assert names(path.parent / "docs_parts") == [version, f"{version}.jsonl"]


def _refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_the_folder_of_the_parts_goes_with_the_last_of_them(path: Path) -> None:
    written(path, [b"1\n"])
    remove_other_parts(path.parent / "docs_parts", "")
    assert names(path.parent) == [path.name]
    remove_other_parts(path.parent / "docs_parts", "")
