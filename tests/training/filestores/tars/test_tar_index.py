"""Tests of dagster_dataops.training.filestores.tars.tar_index."""

import io
import os
import pickle
import tarfile
import time

import pytest

from dagster_dataops import crude
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.training.filestores.tars import index_file, tar_index
from dagster_dataops.training.filestores.tars.index_cache import cache_folder, locked, sweep
from dagster_dataops.training.filestores.tars.shard_scan import TarShard, scan
from dagster_dataops.training.filestores.tars.tar_index import TarIndex
from tests.training.filestores.shards import dataset, samples, write_tar


def shards_of(folder):
    paths = sorted((folder / "shards").glob("*.tar"))
    return [TarShard(f"shards/{path.name}", Location(str(path))) for path in paths]


@pytest.fixture
def folder(tmp_path):
    return dataset(tmp_path / "a")


def test_samples_are_found_by_key_and_by_number(folder):
    index = TarIndex(str(folder), shards_of(folder))
    assert index.find("a00008", "txt") == (1, 2048, 2048 + 1024 + 512, 9)
    assert index.find("a00008", "png") is index.find("nowhere", "txt") is None
    assert index.firsts == [0, 7, 14, 20]
    assert list(index.names())[:2] == ["a00000.json", "a00000.txt"]


@pytest.mark.parametrize("held", [0, 100])
def test_keys_with_the_same_checksum_are_told_apart(tmp_path, monkeypatch, held):
    monkeypatch.setattr(index_file, "_MAX_HELD", held)
    monkeypatch.setattr(index_file, "checksum", len)
    members = [("a.txt", b"1"), ("b.json", b"33"), ("c.txt", b"4"), ("c.json", b"5")]
    path = write_tar(tmp_path / "a.tar", members)
    index = TarIndex(str(tmp_path), [TarShard("a.tar", Location(str(path)))])

    assert index.find("b", "json") == (0, 1024, 1536, 2)
    assert [index.number(key) for key in ("a", "b", "c", "d")] == [0, 1, 2, None]
    assert pickle.loads(pickle.dumps(index)).number("b") == 1


def test_names_are_sorted_over_shards_in_any_order(tmp_path):
    write_tar(tmp_path / "0.tar", [("c.txt", b"1"), ("a.txt", b"2"), ("e.txt", b"3")])
    write_tar(tmp_path / "1.tar", [("b.json", b"1"), ("b.txt", b"2"), ("d.txt", b"3")])
    shards = [TarShard(name, Location(str(tmp_path / name))) for name in ("0.tar", "1.tar")]
    index = TarIndex(str(tmp_path), shards)

    assert list(index.names()) == ["a.txt", "b.json", "b.txt", "c.txt", "d.txt", "e.txt"]
    assert index.facts.files == 6


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
def test_names_that_are_not_utf_8_are_found(tmp_path, kind):
    name = b"\xe9t\xe9.txt".decode("utf-8", "surrogateescape")
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=kind, encoding="utf-8", errors="surrogateescape") as file:
        info = tarfile.TarInfo(name)
        file.addfile(info, io.BytesIO())
    (sample,) = crude(path)
    assert [sample] == list(crude(path).shuffle(0))
    assert sample["__key__"] == name[:-4]
    assert TarIndex(str(tmp_path), [TarShard("a.tar", Location(str(path)))]).number(name[:-4]) == 0


def test_an_interrupted_index_goes_on_with_the_next_shard(folder, monkeypatch):
    scanned = []

    def failing(shard, *given):
        scanned.append(shard.name)
        if shard.name.endswith("002.tar") and len(scanned) == 3:
            raise KeyboardInterrupt
        return scan(shard, *given)

    monkeypatch.setattr(tar_index, "scan", failing)
    with pytest.raises(KeyboardInterrupt):
        TarIndex(str(folder), shards_of(folder))
    assert TarIndex(str(folder), shards_of(folder)).firsts[-1] == 20
    assert scanned == [f"shards/data-00{n}.tar" for n in (0, 1, 2, 2)]


def test_only_new_and_changed_shards_are_scanned_again(folder, monkeypatch):
    TarIndex(str(folder), shards_of(folder))
    scanned = []
    monkeypatch.setattr(
        tar_index, "scan", lambda *given: (scanned.append(given[0]), scan(*given))[1]
    )

    TarIndex(str(folder), shards_of(folder))
    assert scanned == []

    write_tar(folder / "shards/data-001.tar", samples("z", 0, 3))
    write_tar(folder / "shards/data-003.tar", samples("y", 0, 3))
    assert TarIndex(str(folder), shards_of(folder)).firsts[-1] == 19
    assert [one.name[-5] for one in scanned] == ["1", "3"]


def test_a_damaged_cache_file_is_written_again(folder, index_folder):
    list(crude(folder))
    for path in index_folder.glob("*.json"):
        path.write_bytes(b"torn")
    for path in index_folder.glob("*.index"):
        path.write_bytes(path.read_bytes()[:-1])
    assert len(list(crude(folder).shuffle(0))) == 20
    assert not list(index_folder.glob(".draft*"))


DAY = 24 * 60 * 60


@pytest.fixture
def indices():
    return cache_folder()


def aged(path, days, size=10):
    path.write_bytes(bytes(size))
    used = time.time() - days * DAY
    os.utime(path, (used, used))
    return path


def names(indices):
    return sorted(path.name for path in indices.iterdir() if path.name != ".swept")


def test_files_that_were_not_used_for_a_month_are_deleted(indices):
    for days in (0, 2, 29, 31, 90):
        aged(indices / f"{days}.json", days)
    aged(indices / ".draft-of-a-killed-process", 40)
    sweep(indices)

    assert names(indices) == ["0.json", "2.json", "29.json"]


def test_beyond_the_limit_those_that_were_used_least_recently_are_deleted(indices):
    for days in (0, 2, 3, 4):
        aged(indices / f"{days}.json", days)
    sweep(indices, max_bytes=25)

    assert names(indices) == ["0.json", "2.json"]


def test_files_that_were_used_within_a_day_stay_beyond_the_limit(indices):
    aged(indices / "now.json", 0.5, size=100)
    sweep(indices, max_bytes=1)

    assert names(indices) == ["now.json"]


def test_a_file_that_is_open_stays_until_it_is_dropped(indices):
    opened = locked(aged(indices / "open.index", 90))
    sweep(indices)
    assert names(indices) == ["open.index"]

    os.close(opened)
    (indices / ".swept").unlink()
    sweep(indices)
    assert names(indices) == []


def test_it_is_swept_once_a_day(indices):
    sweep(indices)
    aged(indices / "old.json", 90)
    sweep(indices)

    assert names(indices) == ["old.json"]


def test_a_new_index_sweeps_and_an_old_one_counts_as_used(indices, tmp_path):
    path = write_tar(tmp_path / "a.tar", samples("k", 0, 3))
    assert len(list(crude(path))) == 3
    (indices / ".swept").unlink()
    for known in indices.iterdir():
        os.utime(known, (0, 0))
    assert len(list(crude(path))) == 3
    aged(indices / "old.json", 90)
    assert len(list(crude(write_tar(tmp_path / "b.tar", samples("k", 3, 2))))) == 2

    assert "old.json" not in names(indices)
    assert len(names(indices)) == 3
