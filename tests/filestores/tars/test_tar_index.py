"""Tests of dagster_dataops.filestores.tars.tar_index."""

import pickle

import pytest

from dagster_dataops import crude
from dagster_dataops.filestores.tars import tar_index
from dagster_dataops.filestores.tars.shard_scan import Shard, scan
from dagster_dataops.filestores.tars.tar_index import TarIndex
from dagster_dataops.streams.files.locations import Location
from tests.filestores.shards import dataset, samples, write_tar


def shards_of(folder):
    paths = sorted((folder / "shards").glob("*.tar"))
    return [Shard(f"shards/{path.name}", Location(str(path))) for path in paths]


@pytest.fixture
def folder(tmp_path):
    return dataset(tmp_path / "a")


def test_samples_are_found_by_key_and_by_number(folder):
    index = TarIndex(str(folder), shards_of(folder))
    shard, at, parts = index.find("a00008")
    assert (shard.name, at) == ("shards/data-001.tar", 2048)
    assert parts["txt"] == [2048 + 1024 + 512, 9]
    assert index.find("nowhere") is None
    assert (index.count(), len(index.starts(2))) == (20, 7)
    assert list(index.names())[:2] == ["a00000.json", "a00000.txt"]


def test_a_key_is_found_alike_in_memory_and_in_the_file(tmp_path, monkeypatch):
    members = [
        ("a.txt", b"1"),
        ("a.json", b"2"),
        ("b.json", b"33"),
        ("c.txt", b"4"),
        ("c.json", b"5"),
    ]
    path = tmp_path / "a.tar"
    write_tar(path, members)
    shards = [Shard("a.tar", Location(str(path)))]
    held = TarIndex(str(tmp_path), shards)
    found = {key: held.find(key) for key in ("a", "b", "c", "d")}
    monkeypatch.setattr("dagster_dataops.filestores.tars.tar_index.MAX_ROWS", 0)

    assert {key: TarIndex(str(tmp_path), shards).find(key) for key in found} == found
    assert {key: pickle.loads(pickle.dumps(held)).find(key) for key in found} == found
    assert found["b"] == (shards[0], 2048, {"json": [2560, 2]})
    assert found["d"] is None


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
    assert TarIndex(str(folder), shards_of(folder)).count() == 20
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
    assert TarIndex(str(folder), shards_of(folder)).count() == 19
    assert [one.name[-5] for one in scanned] == ["1", "3"]


def test_a_damaged_cache_file_is_written_again(folder, index_folder):
    list(crude(folder))
    for path in index_folder.glob("*.json"):
        path.write_bytes(b"torn")
    for path in index_folder.glob("*.sqlite"):
        path.unlink()
    assert len(list(crude(folder).shuffle(0))) == 20
    assert not list(index_folder.glob(".draft*"))
