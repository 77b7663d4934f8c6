"""Files that are kept open as far as their pool has room, and the index of their lines."""

import os
import tracemalloc
from pathlib import Path

import pytest

from dagster_dataops import read_jsonl
from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files import descriptors, line_index
from dagster_dataops.streams.files.descriptors import FilePool, PooledFile
from tests.streams.indexed_files import numbers, records, write


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n \n", []),
        (b'{"n":1}', [1]),
        (b'\xef\xbb\xbf{"n":1}\r\n\r\n  \n{"n":2}\n\n', [1, 2]),
        (b'\n\n{"n":1}\n{"n":2}\n\n{"n":3}', [1, 2, 3]),
        (b'{"n":1,"x":"' + b"y" * 3_000_000 + b'"}\n{"n":2}\n', [1, 2]),
    ],
    ids=["empty", "blank", "no end", "mark and CRLF", "blank lines", "a long line"],
)
def test_lines_are_found_as_the_reader_from_the_start_finds_them(tmp_path, text, expected):
    source = tmp_path / "source.jsonl"
    source.write_bytes(text)

    assert numbers(read_jsonl(source)) == expected
    assert sorted(numbers(read_jsonl(source).shuffle(0))) == expected


def test_lines_are_found_across_blocks(tmp_path, monkeypatch):
    source = write(tmp_path / "source.jsonl", [*records(300), b"", *records(300)])
    for size in (7, 64, 100, 1000):
        monkeypatch.setattr(line_index, "_BLOCK_BYTES", size)
        line_index._known.clear()
        assert sorted(numbers(read_jsonl(source).shuffle(0))) == sorted([*range(300)] * 2)


def test_the_index_takes_eight_bytes_a_line_and_is_shared(source):
    line_index._known.clear()
    streams = [read_jsonl(source).shuffle(0, seed=seed).and_return() for seed in range(3)]
    iterators = [iter(stream) for stream in streams]
    for iterator in iterators:
        next(iterator)
    (index,) = line_index._known.values()

    assert index.starts.itemsize == 8
    assert len(index.starts) == 101


def test_a_replaced_file_is_indexed_again(source):
    builder = read_jsonl(source).shuffle(0)
    assert len(list(builder)) == 100
    write(source.with_name("other"), records(30)).replace(source)
    assert sorted(numbers(builder)) == list(range(30))


def test_any_number_of_files_is_shuffled_by_number_without_holding_the_records(tmp_path):
    lines = [b'{"n":%d,"pad":"%s"}' % (n, b"x" * 4000) for n in range(3000)]
    for number in range(300):
        write(tmp_path / f"{number}.jsonl", lines[number::300])
    stream = read_jsonl(tmp_path).shuffle(0).and_return()

    tracemalloc.start()
    try:
        found = numbers(stream)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sorted(found) == list(range(3000)) != found
    assert most < 3 << 20  # the records have 12 MB


def test_the_order_of_many_files_does_not_depend_on_how_many_are_open(tmp_path, monkeypatch):
    for number in range(30):
        write(tmp_path / f"{number}.jsonl", [b'{"n":%d}' % n for n in range(number, 300, 30)])
    builder = read_jsonl(tmp_path).shuffle(0, seed=4)
    expected = numbers(builder)
    reading = builder.and_return()
    remaining = iter(reading)
    first = [next(remaining)["n"] for _ in range(50)]

    monkeypatch.setattr(descriptors, "_MAX_OPEN_FILES", 3)
    again = builder.and_return()
    again.load_state_dict(reading.state_dict())
    assert first + numbers(again) == numbers(builder) == expected
