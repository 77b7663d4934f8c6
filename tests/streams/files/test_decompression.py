"""Tests of decompression: packed files, whole, cut off and damaged."""

import bz2
import gzip
import json
import lzma
import shutil
import sys

import pytest

from dagster_dataops import config, errors, load_result, read_jsonl
from dagster_dataops.streams.files.contents import WindowedContent
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.text import read_text
from tests.nodes import text_of

zstandard = pytest.importorskip("zstandard")

PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}
ROWS = [{"n": n, "hash": hash((n, 1)) % 10**15} for n in range(9000)]
CONTENT = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def read_until_error(stream, match):
    """Return the items before the error."""
    found = []
    with pytest.raises(errors.StreamSourceError, match=match):
        for item in stream:
            found.append(item)  # noqa: PERF402 - an error follows
    return found


@pytest.fixture(params=PACKERS)
def suffix(request):
    return request.param


def test_compressed_files_are_decompressed_by_their_suffix(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](CONTENT))
    assert list(read_jsonl(path)) == ROWS
    assert len(list(read_text(path))) == len(ROWS)


def test_parts_that_were_packed_one_by_one_are_one_file(tmp_path, suffix):
    path, pack = tmp_path / f"a.jsonl.{suffix}", PACKERS[suffix]
    half = len(CONTENT) // 2
    path.write_bytes(pack(CONTENT[:half]) + pack(b"") + pack(CONTENT[half:]))
    assert list(read_jsonl(path)) == ROWS


@pytest.mark.slow
def test_compressed_files_resume_at_any_position(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(PACKERS[suffix](CONTENT))
    assert_resumes_anywhere(lambda: read_jsonl(path, block_size=1024), limit=40)


def test_a_compressed_file_is_positioned_at_its_end(tmp_path, suffix):
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
def test_a_truncated_file_is_an_error_after_all_its_records(tmp_path, suffix, share):
    path = tmp_path / f"a.jsonl.{suffix}"
    packed = PACKERS[suffix](CONTENT)
    path.write_bytes(packed[: int(len(packed) * share)])
    found = read_until_error(
        read_jsonl(path, block_size=1024), rf"a\.jsonl\.{suffix}: is truncated"
    )
    assert found == ROWS[: len(found)]
    if suffix == "gz":  # the others give out blocks of up to a megabyte, or nothing of them
        assert len(found) > len(ROWS) * share * 0.8 - 200


def test_half_a_line_before_the_cut_is_no_line(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\nthree")[:-8])
    found = read_until_error(read_text(path), "is truncated")
    assert found == ["one", "two"]


def test_a_damaged_file_is_an_error_after_the_content_before_the_damage(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    pack = PACKERS[suffix]
    damaged = bytearray(pack(CONTENT))
    damaged[len(damaged) // 2 : len(damaged) // 2 + 40] = b"\xff" * 40
    path.write_bytes(pack(CONTENT) * 3 + bytes(damaged))
    found = read_until_error(read_jsonl(path, block_size=1024), rf"a\.jsonl\.{suffix}")
    assert found[: 2 * len(ROWS)] == ROWS * 2


def test_an_uncompressed_file_is_reported(tmp_path, suffix):
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(CONTENT)
    with pytest.raises(errors.StreamSourceError, match=r"is not valid \w+ data"):
        list(read_jsonl(path))
    assert list(read_jsonl(path, compression=None)) == ROWS


def test_padding_after_gzip_is_skipped(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(CONTENT) + b"\0" * 200_000)
    assert list(read_jsonl(path)) == ROWS


def test_a_compression_can_be_given_and_an_unknown_one_is_refused(tmp_path):
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


def test_the_rest_of_a_damaged_file_is_one_failed_item(tmp_path, suffix):
    packed = PACKERS[suffix](CONTENT)
    damaged = bytearray(packed if suffix in {"bz2", "xz"} else packed[:-900])
    if suffix in {"bz2", "xz"}:  # the others have no checksum before the end of the data
        damaged[len(packed) // 2 : len(packed) // 2 + 60] = b"\xff" * 60
    for name, content in (("a", packed[:-9]), ("b", packed), ("c", bytes(damaged)), ("d", packed)):
        (tmp_path / f"{name}.jsonl.{suffix}").write_bytes(content)
    stream = read_jsonl(tmp_path, file_key="file").and_return(on_error="quarantine")

    by_file = {name: [] for name in "abcd"}
    for row in stream:
        by_file[row["file"].removesuffix(f".jsonl.{suffix}")[-1]].append(row["n"])

    numbers = [row["n"] for row in ROWS]
    assert by_file["b"] == by_file["d"] == numbers
    assert by_file["a"] == numbers[: len(by_file["a"])]
    assert by_file["c"] == numbers[: len(by_file["c"])]
    assert stream.errors == 2
    for name, one in zip("ac", stream.quarantined, strict=True):
        assert f"{tmp_path / name}.jsonl.{suffix}: is" in one["message"]


def test_a_missing_file_is_no_damaged_one(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"n":0}\n')
    stream = read_jsonl([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]).and_return(on_error="skip")
    with pytest.raises(errors.StreamSourceError, match=r"b\.jsonl"):
        list(stream)


def test_zstandard_windows_of_any_size_are_read(tmp_path):
    settings = zstandard.ZstdCompressionParameters.from_level(3, window_log=29)
    packed = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    (tmp_path / "a.jsonl.zst").write_bytes(packed.compress(CONTENT) + packed.flush())
    assert list(read_jsonl(tmp_path / "a.jsonl.zst")) == ROWS


def test_xz_streams_may_be_padded(tmp_path):
    part = lzma.compress(CONTENT)
    (tmp_path / "a.jsonl.xz").write_bytes(part + b"\0" * 8 + part + b"\0" * 4)
    assert list(read_jsonl(tmp_path / "a.jsonl.xz")) == ROWS * 2


def frames_of(packed):
    """Return the frames of a compressed result, and its index."""
    starts = [at for at in range(len(packed)) if packed.startswith(b"\x28\xb5\x2f\xfd", at)]
    end = packed.rindex(b"DOframe1") - 8
    return [packed[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)], packed[end:]


def test_a_compressed_result_without_some_of_its_frames_is_refused(tmp_path, registry):
    operator = registry("data.packed", _concurrency_mode="single")(larger)()
    with config.temporary(result_format="jsonl.zst", data_process_path=tmp_path):
        rows = operator([{"n": n} for n in range(3000)])
        packed = load_result(tmp_path / "larger").path.read_bytes()
    frames, index = frames_of(packed)
    assert len(frames) > 2
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(packed + packed)
    assert list(read_jsonl(path)) == rows * 2
    for changed in (frames[1:], frames[:-1], frames[::-1], [*frames, frames[0]]):
        path.write_bytes(b"".join([*changed, index]))
        with pytest.raises(errors.DamagedFileError, match="has an index of another"):
            list(read_jsonl(path))


@pytest.fixture
def packed(tmp_path, registry):
    """Return a compressed result of some frames, with its manifest beside it."""
    operator = registry("data.packed", _concurrency_mode="single")(larger)()
    with config.temporary(result_format="jsonl.zst", data_process_path=tmp_path):
        operator([{"n": n} for n in range(3000)])
        return load_result(tmp_path / "larger")


def test_a_compressed_result_that_ends_with_one_of_its_frames_is_refused(tmp_path, packed):
    frames, _ = frames_of(packed.path.read_bytes())
    (tmp_path / "alone").mkdir()
    alone = tmp_path / "alone" / packed.path.name
    fetched = tmp_path / "fetched" / ".versions" / "00000001-2f" / packed.path.name  # of a bucket
    fetched.parent.mkdir(parents=True)
    shutil.copy(packed.path.with_name("larger_results.jsonl.json"), tmp_path / "fetched")
    url = f"local://{fetched}"
    counts = []
    for count in range(len(frames)):
        for path in (packed.path, fetched, alone):
            path.write_bytes(b"".join(frames[:count]))
        for given in (packed.path, packed.path.parent / "*.zst", url):
            with pytest.raises(errors.DamagedFileError, match="its manifest is that of another"):
                list(read_jsonl(given))
        for stream in (packed.stream(), packed.stream().shuffle(0)):
            with pytest.raises(errors.StreamSourceError, match="no index of frames at its end"):
                list(stream)
        counts.append(len(list(read_jsonl(alone))))
    assert counts[0] == 0
    assert sorted(counts) == counts
    assert counts[-1] < 3000


def test_a_result_that_another_program_compressed_again_is_read_if_the_text_is_its_own(packed):
    packed.path.write_bytes(zstandard.compress(text_of(packed.path)))
    assert len(list(read_jsonl(packed.path))) == 3000
    packed.path.with_name("larger_results.jsonl.json").write_bytes(b"{}")
    with pytest.raises(errors.DamagedFileError, match="its manifest is that of another"):
        list(read_jsonl(packed.path))


def larger(record):
    return {"n": record["n"], "text": "x" * 1000}


class CutSource:
    """A source that fails after some bytes."""

    def __init__(self, content):
        self.left = content

    def read(self, size):
        if not self.left:
            raise errors.StreamSourceError("cut", "is truncated")
        part, self.left = self.left[:size], self.left[size:]
        return part

    def close(self):
        pass


def test_no_bytes_come_from_behind_the_place_where_a_source_fails():
    content = WindowedContent(lambda: CutSource(b"0123456789"))

    assert content.read_at(4, 4) == b"4567"
    assert content.failure is None
    assert content.read_at(4, 20) == b""
    assert content.failure is not None
    assert content.read_at(4, 8) == b"89"
    assert content.read_at(4, 0) == b"0123"
