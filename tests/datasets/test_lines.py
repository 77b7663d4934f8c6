"""Tests of dagster_dataops.datasets.lines."""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.datasets import lines
from dagster_dataops.datasets.lines import (
    Interval,
    LineCounter,
    content_interval,
    count_records,
    iterate_lines,
    next_line_start,
    split_lines,
)
from dagster_dataops.errors import InputError

BOM = b"\xef\xbb\xbf"
TEXTS = st.sampled_from(
    [b"", b" ", b"\t\x0b", b"\r", b"{}", b'{"a":1}', b" {} ", b"{}\r", "{é}".encode(), b"x" * 90]
)
FILES = st.builds(
    lambda bom, texts, last: (BOM if bom else b"") + b"\n".join(texts) + last,
    st.booleans(),
    st.lists(TEXTS, max_size=12),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)


def naive(content: bytes) -> list[bytes]:
    return [text for text in content.removeprefix(BOM).split(b"\n") if text.strip()]


@contextmanager
def file_of(content: bytes) -> Iterator[tuple[Path, int]]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield Path(file.name), file.fileno()


@given(FILES, st.integers(1, 40))
def test_lines_are_those_of_a_naive_splitter_for_any_block_size(content, block):
    sizes = patch.multiple(lines, BLOCK_BYTES=block, _FIRST_BYTES=max(1, block // 2))
    with file_of(content) as (path, descriptor), sizes:
        found = list(iterate_lines(descriptor, [content_interval(path)]))

    assert [line.text for line in found] == naive(content)


@given(FILES)
def test_positions_lead_back_to_the_lines(content):
    with file_of(content) as (path, descriptor):
        found = list(iterate_lines(descriptor, [content_interval(path)]))

    for line in found:
        assert content[line.start : line.end].removesuffix(b"\n") == line.text
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))


@given(FILES, st.lists(st.integers(1, 400), max_size=4))
def test_ranges_cut_anywhere_hold_every_line_once(content, wishes):
    with file_of(content) as (path, descriptor):
        whole = content_interval(path)
        cuts = {
            next_line_start(descriptor, max(whole.start + 1, min(wish, whole.end)), whole.end)
            for wish in wishes
        }
        edges = sorted({whole.start, *cuts, whole.end})
        ranges = [Interval(*pair) for pair in itertools.pairwise(edges)]
        parts = [line.text for one in ranges for line in iterate_lines(descriptor, [one])]

        assert parts == naive(content)
        assert sum(count_records(descriptor, one) for one in ranges) == len(parts)


@given(FILES, st.integers(1, 300))
def test_the_next_line_start_is_the_first_one_not_before(content, position):
    with file_of(content) as (_, descriptor):
        position = min(position, len(content)) or 1
        found = next_line_start(descriptor, position, len(content))

    starts = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    assert found == next((start for start in starts if start >= position), len(content))


def test_a_line_longer_than_any_block_is_one_line(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"a" * (3 << 20) + b"\nb\n")

    with path.open("rb") as file:
        found = list(iterate_lines(file.fileno(), [content_interval(path)]))

    assert [len(line.text) for line in found] == [3 << 20, 1]


@given(st.lists(TEXTS, max_size=8))
def test_splitting_a_block_loses_nothing(texts):
    lines = [text + b"\n" for text in texts]

    assert split_lines(b"".join(lines)) == lines
    assert split_lines(b"".join(lines) + b"{}") == [*lines, b"{}"]


@given(FILES)
def test_line_numbers_count_every_newline(content):
    with file_of(content) as (path, descriptor):
        counter = LineCounter(descriptor)
        for line in iterate_lines(descriptor, [content_interval(path)]):
            assert counter.line_at(line.start) == content[: line.start].count(b"\n") + 1


def test_a_missing_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        content_interval(tmp_path / "missing.jsonl")


def test_a_folder_is_an_input_error_with_a_remedy(tmp_path):
    with pytest.raises(InputError, match="this is a folder; give the path of one jsonl file"):
        content_interval(tmp_path)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_is_refused_rather_than_misread(tmp_path, codec):
    path = tmp_path / "wide.jsonl"
    path.write_bytes('\ufeff{"a": 1}\n'.encode(codec))

    with pytest.raises(InputError, match="UTF-16; convert it to UTF-8"):
        content_interval(path)


def test_an_empty_file_has_no_lines(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.touch()

    assert content_interval(path) == Interval(0, 0)
    with path.open("rb") as file:
        assert list(iterate_lines(file.fileno(), [Interval(0, 0)])) == []


def test_a_file_truncated_while_it_is_read_yields_no_incomplete_line(tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n')
    with path.open("r+b") as file:
        whole = content_interval(path)
        file.truncate(12)
        reading = iterate_lines(file.fileno(), [whole])
        with pytest.raises(InputError, match=r"cut\.jsonl: became shorter while it was read"):
            list(reading)
        with pytest.raises(InputError, match="became shorter"):
            next_line_start(file.fileno(), 10, whole.end)


def test_a_disk_that_cannot_be_read_is_an_input_error(tmp_path, monkeypatch):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"{}\n")

    def fail(*_):
        raise OSError(5, "Input/output error")

    with path.open("rb") as file:
        monkeypatch.setattr(lines, "read_range", fail)
        with pytest.raises(InputError, match=r"bad\.jsonl: cannot be read: Input/output error"):
            list(iterate_lines(file.fileno(), [Interval(0, 3)]))
