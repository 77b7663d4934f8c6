"""Properties of the jsonl reader for any file content and any cuts."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from dagster_dataops.datasets import lines
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import (
    Interval,
    LineCounter,
    content_interval,
    count_records,
    iterate_lines,
    next_line_start,
)
from dagster_dataops.errors import InputError
from dagster_dataops.records import decode

_BOM = b"\xef\xbb\xbf"


@contextmanager
def _file(content: bytes) -> Iterator[tuple[Path, int]]:
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, content)
        yield Path(f"/proc/self/fd/{descriptor}"), descriptor
    finally:
        os.close(descriptor)


def check(data: bytes) -> None:
    """Read a file; the first bytes of ``data`` say how, the others are its content."""
    block, count = (data[0] % 64) + 1, data[1] % 5 if len(data) > 1 else 0
    wishes = [byte * 2 for byte in data[2 : 2 + count]]
    check_content(data[2 + count :], block, wishes)


def check_content(content: bytes, block: int, wishes: list[int]) -> None:
    """Read ``content`` in blocks, and once more in ranges."""
    with _file(content) as (path, descriptor), patch.object(lines, "BLOCK_BYTES", block):
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            _check_utf16_is_refused(path)
            return
        whole = content_interval(path)
        assert whole == Interval(len(_BOM) if content.startswith(_BOM) else 0, len(content))
        found = list(iterate_lines(descriptor, [whole]))
        naive = [text for text in content[whole.start :].split(b"\n") if text.strip()]
        assert [line.text for line in found] == naive, "the lines are not those of a naive splitter"
        for line in found:
            assert content[line.start : line.end].removesuffix(b"\n") == line.text
        assert all(one.end <= other.start for one, other in itertools.pairwise(found))
        _check_ranges(descriptor, whole, wishes, naive)
        _check_numbers(descriptor, content, found)
        _check_records(path, naive)


def _check_utf16_is_refused(path: Path) -> None:
    try:
        content_interval(path)
    except InputError:
        return
    msg = "UTF-16 was read"
    raise AssertionError(msg)


def _check_ranges(descriptor: int, whole: Interval, wishes: list[int], naive: list[bytes]) -> None:
    cuts = {
        next_line_start(descriptor, max(whole.start + 1, min(wish, whole.end)), whole.end)
        for wish in wishes
    }
    edges = sorted({whole.start, *cuts, whole.end})
    ranges = [Interval(*pair) for pair in itertools.pairwise(edges)]
    parts = [line.text for line in iterate_lines(descriptor, ranges)]
    assert parts == naive, "lines differ where the file is read in ranges"
    assert sum(count_records(descriptor, one) for one in ranges) == len(naive)


def _check_numbers(descriptor: int, content: bytes, found: list[lines.Line]) -> None:
    counter = LineCounter(descriptor)
    for line in found:
        number = content[: line.start].count(b"\n") + 1
        assert counter.line_at(line.start) == number, "a line has another number"


def _check_records(path: Path, naive: list[bytes]) -> None:
    good, first_bad = [], None
    for text in naive:
        try:
            good.append(decode(text))
        except ValueError as error:
            first_bad = first_bad or str(error)
    with suppress(InputError):  # of another format; the owner of a handle is not informed
        JsonlDataset.of_file(path)
    dataset = JsonlDataset(path, path.stat().st_size)
    # NaN is not JSON and never equals itself: decoded records are compared by their text.
    assert repr(dataset.sample(len(naive))) == repr(good)
    try:
        read = dataset.read()
    except InputError as error:
        refused = str(error)
    else:
        refused = None
        assert repr(read) == repr(good)
    assert (refused is None) == (first_bad is None), "a good file refused, or a bad line passed"
    assert refused is None or str(first_bad) in refused
