"""Tests of dagster_dataops.training.filestores.tars.tar_headers and tar_samples."""

import gzip
import io
import tarfile

import pytest

from dagster_dataops import crude, read_tar
from dagster_dataops.errors import DuplicateKeyError, StreamSourceError
from dagster_dataops.testing import assert_resumes_anywhere
from tests.training.filestores.shards import samples, write_tar

LONG = "d" * 90 + "/" + "e" * 120 + "/" + "ü" * 30


def parts(path, **options):
    found = []
    for sample in read_tar(path, **options):
        kept = {key: one for key, one in sample.items() if not key.startswith("__")}
        found.append((sample["__key__"], kept))
    return found


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_read(tmp_path, kind):
    path = write_tar(tmp_path / "x.tar", [(f"{LONG}.txt", b"1"), (f"{LONG}.a.b", b"2")], kind)
    assert parts(path) == [(LONG, {"txt": b"1", "a.b": b"2"})]


def test_folders_and_other_members_are_passed_over(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as file:
        for name, kind in [("a", tarfile.DIRTYPE), ("b.txt", tarfile.FIFOTYPE)]:
            info = tarfile.TarInfo(name)
            info.type = kind
            file.addfile(info)
        info = tarfile.TarInfo("c.txt")
        info.size = 3
        file.addfile(info, io.BytesIO(b"abc"))
    assert parts(path) == [("c", {"txt": b"abc"})]


def test_links_are_read_by_tarfile_also_by_number(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as file:
        for name, data in [("a.txt", b"first"), ("b.txt", None), ("c.txt", b"last")]:
            info = tarfile.TarInfo(name)
            if data is None:
                info.type, info.linkname = tarfile.LNKTYPE, "a.txt"
            info.size = len(data or b"")
            file.addfile(info, io.BytesIO(data or b""))
    expected = [("a", {"txt": b"first"}), ("b", {"txt": b"first"}), ("c", {"txt": b"last"})]
    assert parts(path) == expected
    found = {one["__key__"]: one["txt"] for one in crude(path).shuffle(0)}
    assert found == {key: one["txt"] for key, one in expected}
    assert_resumes_anywhere(lambda: crude(path))


@pytest.mark.parametrize("block_size", [1024, 4096, 1 << 20])
def test_the_size_of_blocks_changes_nothing(tmp_path, block_size):
    path = write_tar(tmp_path / "x.tar", [*samples("k", 0, 30), ("z.bin", b"z" * 9000)])
    assert parts(path, block_size=block_size) == parts(path)
    assert_resumes_anywhere(lambda: read_tar(path, block_size=block_size))


def test_a_compressed_archive_is_read(tmp_path):
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(write_tar(tmp_path / "x.tar", [("a.txt", b"1")]).read_bytes()))

    assert parts(path) == [("a", {"txt": b"1"})]


def test_an_empty_archive_has_no_samples(tmp_path):
    path = write_tar(tmp_path / "x.tar", [])
    assert parts(path) == []
    assert list(crude(path).shuffle(0)) == []


@pytest.mark.parametrize("end", [100, 512 * 9 + 100, 512 * 8 + 100, 512 * 8])
def test_a_torn_archive_gives_its_complete_samples_then_an_error(tmp_path, end):
    path = write_tar(tmp_path / "torn.tar", samples("k", 0, 4))
    path.write_bytes(path.read_bytes()[:end])
    other = write_tar(tmp_path / "whole.tar", samples("z", 0, 1))

    stream = crude(tmp_path / "*.tar").and_return(on_error="skip")
    found = [one["__key__"] for one in stream]

    assert found == [f"k0000{n}" for n in range({100: 0, 4096: 1, 4196: 1, 4708: 2}[end])] + [
        "z00000"
    ]
    assert stream.errors == 1
    with pytest.raises(StreamSourceError, match=r"torn.tar: the archive is torn: .* after byte"):
        list(crude([path, other][0]))
    assert_resumes_anywhere(lambda: crude(tmp_path / "*.tar").and_return(on_error="skip"))


def test_a_damaged_header_is_an_error_behind_the_samples_before_it(tmp_path):
    path = write_tar(tmp_path / "x.tar", samples("k", 0, 6))
    data = bytearray(path.read_bytes())
    data[512 * 16 + 3] ^= 1
    path.write_bytes(data)
    found = []
    with pytest.raises(StreamSourceError, match=r"header at byte 8,192 .* checksum is wrong"):
        found.extend(one["__key__"] for one in read_tar(path))
    assert found == ["k00000", "k00001", "k00002"]


def test_a_part_that_comes_twice_is_refused_or_chosen(tmp_path):
    path = write_tar(tmp_path / "t.tar", [("x.txt", b"1"), ("x.txt", b"2"), ("y.txt", b"3")])
    with pytest.raises(DuplicateKeyError, match="'x.txt' occurs twice"):
        list(crude(path))
    for kept, data in (("first", b"1"), ("last", b"2")):
        assert [one["txt"] for one in crude(path, duplicates=kept)] == [data, b"3"]


def test_parts_that_are_apart_are_refused_or_chosen(tmp_path):
    path = write_tar(tmp_path / "p.tar", [("x.txt", b"1"), ("y.txt", b"2"), ("x.json", b"3")])
    with pytest.raises(DuplicateKeyError, match="'x' occurs twice, in p.tar and in p.tar"):
        list(crude(path))
    for kept, expected in (("first", [["txt"], ["txt"]]), ("last", [["txt"], ["json"]])):
        found = [
            [part for part in one if not part.startswith("__")]
            for one in crude(path, duplicates=kept)
        ]
        assert found == expected
        assert len(list(crude(path, duplicates=kept).shuffle(0))) == 2


def test_only_chosen_parts_are_kept(tmp_path):
    path = write_tar(tmp_path / "x.tar", samples("k", 0, 2))
    assert parts(path, parts=["txt"])[1] == ("k00001", {"txt": b"caption 1"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", ("a", "txt")),
        ("d/x.y.txt", ("d/x", "y.txt")),
        ("d.v1/z.txt", ("d.v1/z", "txt")),
        ("./q.txt", ("./q", "txt")),
        ("UP.TXT", ("UP", "TXT")),
        ("noext", None),
        (".hidden.txt", None),
        ("d/.hidden.txt", None),
        ("__meta__/x.txt", None),
    ],
)
def test_a_name_is_divided_at_the_first_dot_of_its_last_component(name, expected, tmp_path):
    path = write_tar(tmp_path / "shard.tar", [(name, b"content")])
    found = [
        (sample["__key__"], part)
        for sample in read_tar(path)
        for part, content in sample.items()
        if content == b"content"
    ]
    assert found == ([] if expected is None else [expected])
