"""Files that are kept open as far as their pool has room."""

import os
from pathlib import Path

import pytest

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files import descriptors
from dagster_dataops.streams.files.descriptors import FilePool, PooledFile


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(descriptors, "_MAX_OPEN_FILES", 2)
    found = [tmp_path / f"{number}" for number in range(3)]
    for path in found:
        path.write_text(path.name)
    return found


def open_below(folder: Path) -> set[str]:
    links = list(Path("/proc/self/fd").iterdir())
    targets = [link.readlink() for link in links if link.is_symlink()]
    return {one.name for one in targets if one.parent == folder}


def text_of(file: PooledFile) -> str:
    return os.pread(file.opened(), 10, 0).decode()


def test_the_file_opened_first_is_closed_when_the_pool_is_full(paths: list[Path]) -> None:
    folder = paths[0].parent
    with FilePool() as pool:
        files = [PooledFile(str(path), pool) for path in paths]
        assert open_below(folder) == {"1", "2"}
        assert [text_of(file) for file in files] == ["0", "1", "2"]
        assert [text_of(files[1]), text_of(files[2])] == ["1", "2"]
        assert open_below(folder) == {"1", "2"}
    assert open_below(folder) == set()


def test_a_file_that_was_replaced_while_it_was_closed_is_an_error(paths: list[Path]) -> None:
    with FilePool() as pool:
        first, *_ = [PooledFile(str(path), pool) for path in paths]
        paths[1].write_text("0")
        paths[1].replace(paths[0])
        with pytest.raises(StreamSourceError, match=r"/0: was replaced or written while it"):
            first.opened()


def test_a_file_that_got_another_link_while_it_was_closed_is_read_on(paths: list[Path]) -> None:
    with FilePool() as pool:
        first, *_ = [PooledFile(str(path), pool) for path in paths]
        paths[0].with_name("link").hardlink_to(paths[0])
        assert text_of(first) == "0"
