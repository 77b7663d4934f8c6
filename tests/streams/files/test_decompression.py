"""Tests of decompression: packed files, whole, cut off and damaged."""

import bz2
import gzip
import json
import lzma
import sys

import pytest

from dagster_dataops import errors, read_jsonl
from dagster_dataops.streams.text import read_text
from dagster_dataops.testing import assert_resumes_anywhere

zstandard = pytest.importorskip("zstandard")

PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}
ROWS = [{"n": n, "hash": hash((n, 1)) % 10**15} for n in range(9000)]
CONTENT = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


@pytest.fixture(params=PACKERS)
def suffix(request):
    return request.param


def test_packed_files_are_unpacked_by_the_end_of_their_name(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](CONTENT))
    assert list(read_jsonl(path)) == ROWS
    assert len(list(read_text(path))) == len(ROWS)


def test_parts_that_were_packed_one_by_one_are_one_file(tmp_path, suffix):
    path, pack = tmp_path / f"a.jsonl.{suffix}", PACKERS[suffix]
    half = len(CONTENT) // 2
    path.write_bytes(pack(CONTENT[:half]) + pack(b"") + pack(CONTENT[half:]))
    assert list(read_jsonl(path)) == ROWS


def test_packed_files_resume_anywhere(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](CONTENT))
    assert_resumes_anywhere(lambda: read_jsonl(path, block_size=1024), limit=40)


def test_the_end_of_a_packed_file_is_gone_to(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](CONTENT))
    stream = read_jsonl(path, line_key="line").and_return()
    for row in stream:
        if row["n"] == 8990:
            break
    again = read_jsonl(path, line_key="line").and_return()
    again.load_state_dict(stream.state_dict())
    assert [row["line"] for row in again] == list(range(8992, 9001))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_an_error_behind_all_that_is_left_of_it(tmp_path, suffix, share):
    path = tmp_path / f"a.jsonl.{suffix}"
    packed = PACKERS[suffix](CONTENT)
    path.write_bytes(packed[: int(len(packed) * share)])
    found = []
    with pytest.raises(errors.StreamSourceError, match=rf"a\.jsonl\.{suffix}: is truncated"):
        for row in read_jsonl(path, block_size=1024):
            found.append(row)  # noqa: PERF402 - to see what came before the error
    assert found == ROWS[: len(found)]
    if suffix == "gz":  # the others give out blocks of up to a megabyte, or nothing of them
        assert len(found) > len(ROWS) * share * 0.8 - 200


def test_half_a_line_before_the_cut_is_no_line(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\nthree")[:-8])
    found = []
    with pytest.raises(errors.StreamSourceError, match="is truncated"):
        for line in read_text(path):
            found.append(line)  # noqa: PERF402 - to see what came before the error
    assert found == ["one", "two"]


def test_a_damaged_file_is_an_error_behind_what_comes_before_the_damage(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    pack = PACKERS[suffix]
    damaged = bytearray(pack(CONTENT))
    damaged[len(damaged) // 2 : len(damaged) // 2 + 40] = b"\xff" * 40
    path.write_bytes(pack(CONTENT) * 3 + bytes(damaged))
    found = []
    with pytest.raises(errors.StreamSourceError, match=rf"a\.jsonl\.{suffix}"):
        for row in read_jsonl(path, block_size=1024):
            found.append(row)  # noqa: PERF402 - to see what came before the error
    assert found[: 2 * len(ROWS)] == ROWS * 2


def test_what_is_not_packed_at_all_is_told(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(CONTENT)
    with pytest.raises(errors.StreamSourceError, match=r"is not valid \w+ data"):
        list(read_jsonl(path))
    assert list(read_jsonl(path, compression=None)) == ROWS


def test_padding_behind_gzip_is_passed_over(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(CONTENT) + b"\0" * 200_000)
    assert list(read_jsonl(path)) == ROWS


def test_a_kind_can_be_told_and_an_unknown_one_is_refused(tmp_path):
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(CONTENT))
    assert list(read_jsonl(path, compression="gzip")) == ROWS
    with pytest.raises(
        errors.StreamDefinitionError, match="compression is 'rar'; it must be 'infer'"
    ):
        read_jsonl(path, compression="rar")


def test_an_empty_packed_file_has_no_lines(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](b""))
    assert list(read_jsonl(path)) == []


def test_bad_lines_are_named_in_packed_files_too(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](b'{"a":1}\n' * 1000 + b"bad\n" * 3))
    stream = read_jsonl(path, block_size=1024).and_return(on_error="quarantine")
    assert len(list(stream)) == 1000
    assert [one["message"].split(":")[1] for one in stream.quarantined] != []
    assert "line 1001:" in stream.quarantined[0]["message"]
    assert "line 1003:" in stream.quarantined[2]["message"]


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(b"{}\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[zstd\]"):
        list(read_jsonl(path))
