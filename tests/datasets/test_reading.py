"""Tests of jsonl files that are read: handles, lines, batches, samples, other formats."""

import bz2
import gzip
import itertools
import json
import lzma
import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset
from dagster_dataops.datasets import lines
from dagster_dataops.datasets.batches import BatchStarts, batches_of
from dagster_dataops.datasets.lines import (
    Interval,
    LineCounter,
    content_interval,
    count_records,
    iterate_lines,
    next_line_start,
    split_lines,
)
from dagster_dataops.datasets.record_samples import first_records, spread_sample
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


def test_a_folder_is_an_input_error_with_a_remedy(tmp_path):
    with pytest.raises(
        InputError,
        match=r"this is a folder; give the path of one jsonl file, or read_jsonl\(folder\)",
    ):
        content_interval(tmp_path)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_is_refused_rather_than_misread(tmp_path, codec):
    path = tmp_path / "wide.jsonl"
    path.write_bytes('\ufeff{"a": 1}\n'.encode(codec))

    with pytest.raises(InputError, match="UTF-16; convert it to UTF-8"):
        content_interval(path)


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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "input.jsonl"


def _numbers(path: Path, intervals: list[Interval], size: int) -> list[list[int]]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = batches_of(descriptor, intervals, 0, size)
        return [[int(line.text) for line in batch] for batch in found]
    finally:
        os.close(descriptor)


def _starts(path: Path, size: int) -> Iterator[int]:
    content = path.read_bytes()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        starts = BatchStarts.of(descriptor, Interval(0, len(content)), size)
        for position in range(len(content) + 1):
            yield starts.at_or_after(position, len(content))
    finally:
        os.close(descriptor)


def test_batches_begin_at_multiples_of_their_size(path: Path) -> None:
    path.write_text("".join(f"{n}\n" for n in range(10)))
    whole = [Interval(0, path.stat().st_size)]
    assert _numbers(path, whole, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_blank_lines_are_no_records(path: Path) -> None:
    path.write_text("0\n\n1\n \n2\n3\n")
    whole = [Interval(0, path.stat().st_size)]
    assert _numbers(path, whole, 2) == [[0, 1], [2, 3]]


def test_a_batch_ends_with_its_interval(path: Path) -> None:
    path.write_text("".join(f"{n}\n" for n in range(10)))
    assert _numbers(path, [Interval(2, 6), Interval(12, 20)], 4) == [[1, 2], [6, 7], [8, 9]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 40), size=st.integers(1, 9), cuts=st.sets(st.integers(0, 45)))
def test_intervals_cut_at_starts_of_batches_give_the_same_batches(
    path: Path, count: int, size: int, cuts: set[int]
) -> None:
    path.write_text("".join(f"{n:03}\n" for n in range(count)))
    end = path.stat().st_size
    at = list(_starts(path, size))
    edges = sorted({0, end, *(at[min(cut, end)] for cut in cuts)})
    parts = [Interval(*pair) for pair in pairwise(edges)]
    assert _numbers(path, parts, size) == _numbers(path, [Interval(0, end)], size)


def test_the_start_at_or_after_a_position_is_the_end_beyond_the_last_batch(path: Path) -> None:
    path.write_text("0\n1\n2\n3\n4\n")
    assert list(_starts(path, 2)) == [0, 4, 4, 4, 4, 8, 8, 8, 8, 10, 10]


def dataset(folder: Path, lines: list[bytes], end: bytes = b"\n") -> JsonlDataset:
    path = folder / "records.jsonl"
    path.write_bytes(b"\n".join(lines) + end)
    return JsonlDataset.of_file(path)


def numbered(count: int, width: int = 0) -> list[bytes]:
    return [orjson.dumps({"id": number, "fill": "x" * width}) for number in range(count)]


def ids(records: list) -> list[int]:
    return [record["id"] for record in records]


def test_a_small_file_is_taken_whole(tmp_path: Path) -> None:
    sample = spread_sample(dataset(tmp_path, numbered(100)), 100)
    assert sample.whole
    assert ids(sample.records) == list(range(100))


def test_of_more_records_both_ends_and_those_at_equal_distances_are_taken(tmp_path: Path) -> None:
    sample = spread_sample(dataset(tmp_path, numbered(101)), 11)
    assert not sample.whole
    assert ids(sample.records) == list(range(0, 101, 10))


@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline at the end", "none"])
def test_a_large_file_is_sampled_from_its_first_record_to_its_last(
    tmp_path: Path, end: bytes
) -> None:
    sample = spread_sample(dataset(tmp_path, numbered(20_000, width=200), end), 1000)
    found = ids(sample.records)
    assert not sample.whole
    assert found == sorted(set(found))
    assert (found[0], found[-1]) == (0, 19_999)
    assert 900 <= len(found) <= 1008
    gaps = [after - before for before, after in itertools.pairwise(found)]
    assert max(gaps) < 20_000 / 10


def test_lines_longer_than_a_block_are_passed_over_unless_they_are_all_there_is(
    tmp_path: Path,
) -> None:
    mixed = [*numbered(10, width=300_000), *numbered(50_000)]
    found = ids(spread_sample(dataset(tmp_path, mixed), 100).records)
    assert found[-1] == 49_999
    alone = spread_sample(dataset(tmp_path, numbered(10, width=300_000)), 100)
    assert ids(alone.records) == [0]
    none = spread_sample(dataset(tmp_path, numbered(2, width=5 << 20)), 100)
    assert none.records == []


@pytest.mark.parametrize("lines", [[], [b"", b"  "], [b"no json", b"[1]", b"5"]])
def test_lines_that_are_not_records_are_left_out(tmp_path: Path, lines: list[bytes]) -> None:
    found = dataset(tmp_path, [*lines, b'{"id":1}', *lines])
    assert ids(spread_sample(found, 10).records) == [1]
    assert ids(first_records(found, 10, 1000)) == [1]
    assert spread_sample(dataset(tmp_path, []), 10).records == []


def test_a_byte_order_mark_and_windows_line_ends_are_not_part_of_records(tmp_path: Path) -> None:
    found = dataset(tmp_path, [b'\xef\xbb\xbf{"id":0}\r', b'{"id":1}\r'])
    assert ids(spread_sample(found, 10).records) == [0, 1]
    assert ids(first_records(found, 10, 1000)) == [0, 1]


@given(width=st.integers(0, 400), max_bytes=st.integers(0, 3000), count=st.integers(1, 20))
def test_first_records_are_the_first_and_end_where_they_may(
    tmp_path_factory: pytest.TempPathFactory, width: int, max_bytes: int, count: int
) -> None:
    lines = numbered(10, width)
    found = ids(first_records(dataset(tmp_path_factory.mktemp("d"), lines), count, max_bytes))
    assert found == list(range(len(found)))
    assert 1 <= len(found) <= min(count, 10)
    size = sum(len(line) + 1 for line in lines[: len(found)])
    assert size <= max_bytes or len(found) == 1


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    gone = JsonlDataset(tmp_path / "gone.jsonl", 5)
    with pytest.raises(InputError, match="no such file"):
        spread_sample(gone, 5)


OTHER_RECORDS = [{"id": n, "text": "a, b", "in": {"x": {}}} for n in range(3)]
LINES = b"".join(json.dumps(record).encode() + b"\n" for record in OTHER_RECORDS)


@pytest.mark.parametrize(
    ("content", "kind", "advice"),
    [
        (b'id,text\n1,"a, b"\n2,"c\nd"\n3,e\n', "CSV", "read_delimited(path)"),
        (b"id;text\n1;a, b\n", "CSV", "delimiter=';'"),
        (b"id\ttext\n1\ta, b\n", "TSV", "read_delimited(path, delimiter='\\t')"),
        (json.dumps(OTHER_RECORDS).encode(), "a JSON array", "json.load()"),
        (json.dumps(OTHER_RECORDS, indent=1).encode(), "a JSON array", "json.load()"),
        (b'[\n{"a":1},\n{"a":2}\n]\n', "a JSON array", "json.load()"),
        (b'[{"a":1},\n{"a":2}]\n', "a JSON array", "json.load()"),
        (json.dumps(OTHER_RECORDS[0], indent=1).encode(), "JSON of several lines", "on one line"),
        (b'{"a":1},\n{"a":2},\n', "JSON of several lines", "on one line"),
        (b"[1,2]\n[3,4]\n", "JSON values that are not objects", "as an object"),
        (b"<html>\n<body/>\n</html>\n", "XML or HTML", "read_files(path)"),
        (b"once upon a time\nthere was a file\n", "text", "read_text(path"),
        (b"PAR1\x15\x04\x15", "a Parquet file", "read_parquet(path)"),
        (b"ARROW1\x00\x00\xff", "an Arrow file", "read_arrow(path)"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n", "a WARC file", "read_warc(path)"),
        (gzip.compress(LINES, mtime=0), "a gzip file", ".gz"),
        (bz2.compress(LINES), "a bzip2 file", ".bz2"),
        (lzma.compress(LINES), "an xz file", ".xz"),
        (b"PK\x03\x04\x14\x00", "a zip archive", "unpack it"),
        (LINES.decode().encode("utf-16-le"), "text in UTF-16", "UTF-8"),
        (b"\xef\xbb\xbfid,text\n1,a\n", "CSV", "read_delimited(path)"),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_name_of_its_reader(
    tmp_path: Path, content: bytes, kind: str, advice: str
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        JsonlDataset.of_file(path)
    assert str(path) in str(caught.value)
    assert f"looks like {kind}" in str(caught.value) or kind in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n  \n",
        LINES,
        b"\xef\xbb\xbf" + LINES,
        LINES.replace(b"\n", b"\r\n"),
        b"no JSON\n" * 99 + LINES,
        b"[broken\n" + LINES,
        b'[broken\n{"a":1}\n',
        b"[1, 2]\n" + LINES,
        b'{"a":NaN}\n' * 200,
        b'{"a":1}{"b":2}\n' * 200,
        b'{"cut off',
        b'{"long":"' + b"x" * 200_000 + b'"}\n',
    ],
)
def test_a_file_with_an_object_on_one_of_its_first_lines_is_taken(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    JsonlDataset.of_file(path)


@given(st.binary(max_size=300))
def test_any_file_content_is_accepted_or_refused_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        JsonlDataset.of_file(path)
    except InputError as error:
        str(error).encode()
