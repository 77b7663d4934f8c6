"""Tests of dagster_dataops.training.cooking.crude_tars.

All ways to read samples of tar shards agree.
"""

import json

import pytest

from dagster_dataops import TextSample, basic_sample_keys, cooker, crude, restore_record
from dagster_dataops.errors import DuplicateKeyError, IndexOutdatedError
from dagster_dataops.pipelines.tracing.crude_origins import crude_files
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.stage import ReadContext
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.training.cooking.cookers import listed_cookers
from dagster_dataops.training.cooking.index_cooking import IndexCooker
from tests.training.filestores.shards import samples, write_tar


def cook_text(sample):
    return TextSample(**basic_sample_keys(sample), text=sample["txt"].decode())


@pytest.fixture
def twice(tmp_path):
    """Shards in which sample x has a part twice, and y and z are there twice."""
    first = [("x.txt", b"x1"), ("x.txt", b"x2"), ("y.txt", b"y1"), ("z.txt", b"z1")]
    second = [("a.txt", b"a1"), ("z.txt", b"z2"), ("b.txt", b"b1"), ("y.txt", b"y2")]
    write_tar(tmp_path / "twice" / "0.tar", first)
    write_tar(tmp_path / "twice" / "1.tar", second)
    return tmp_path / "twice"


KEPT = {
    "first": {"x": b"x1", "y": b"y1", "z": b"z1", "a": b"a1", "b": b"b1"},
    "last": {"x": b"x2", "a": b"a1", "z": b"z2", "b": b"b1", "y": b"y2"},
}


@pytest.mark.parametrize("held", [0, 100])
@pytest.mark.parametrize("duplicates", KEPT)
def test_every_way_to_read_keeps_the_same_duplicates(twice, duplicates, held, monkeypatch):
    monkeypatch.setattr("dagster_dataops.training.filestores.tars.index_file._MAX_HELD", held)
    wanted = KEPT[duplicates]
    stream = crude(twice, duplicates=duplicates)
    found = list(stream)

    assert {one["__key__"]: one["txt"] for one in found} == wanted
    assert [one["__key__"] for one in found] == list(wanted)
    shuffled = crude(twice, duplicates=duplicates).shuffle(0, seed=1)
    assert sorted(map(repr, shuffled)) == sorted(map(repr, found))
    rows = list(crude(twice, duplicates=duplicates).index())
    places = [one["__sources__"][0] for one in found]
    assert [(row["key"], row["shard"], row["index"]) for row in rows] == [
        (key, place.shard_name, place.index) for key, place in zip(wanted, places, strict=True)
    ]
    for row in rows:
        offset, size = row["parts"]["txt"]
        data = (twice / row["shard"]).read_bytes()[offset : offset + size]
        assert data == wanted[row["key"]]
    store = stream.stage.store()
    assert {key: store.get(f"{key}.txt") for key in wanted} == wanted


@pytest.mark.parametrize("duplicates", KEPT)
def test_records_of_duplicates_are_made_again_and_traced(twice, duplicates):
    stream = crude(twice, duplicates=duplicates).cook(cook_text)
    rows = crude(twice, duplicates=duplicates).index()
    for record, row in zip(stream, rows, strict=True):
        assert restore_record(stream, record["__restore_key__"]) == record
        (place,) = record["__sources__"]
        assert place.file_names == [f"{record['__key__']}.txt"]
        (file,) = crude_files([json.dumps(row), json.dumps(record)])
        data = (twice / file.shard).read_bytes()[file.first : file.end]
        assert data.decode() == record["text"]


@pytest.mark.parametrize("duplicates", KEPT)
def test_a_cooker_of_an_index_finds_the_kept_duplicates_by_name(twice, duplicates):
    @cooker(need_primary=True)
    def cook_by_name(sample, primary):
        key = sample["__key__"]
        return TextSample(**basic_sample_keys(sample), text=primary.get(f"{key}.txt").decode())

    rows = crude(twice, duplicates=duplicates).index()
    made = IndexCooker(listed_cookers(cook_by_name))
    assert [made(row)["text"].encode() for row in rows] == list(KEPT[duplicates].values())


@pytest.mark.parametrize("duplicates", KEPT)
@pytest.mark.parametrize("kind", ["ordered", "shuffled", "index"])
def test_a_stream_of_duplicates_resumes_anywhere(twice, duplicates, kind):
    def stream():
        found = crude(twice, duplicates=duplicates)
        return {"ordered": found, "shuffled": found.shuffle(0, seed=1), "index": found.index()}[
            kind
        ]

    assert_resumes_anywhere(stream)


def test_parts_whose_names_begin_with_underscores_are_read(tmp_path):
    members = [("__a.txt", b"1"), ("__a.__m", b"2"), ("__a.x__", b"3"), ("b.__m", b"4")]
    path = write_tar(tmp_path / "u.tar", members)
    wanted = [("__a", {"txt": b"1", "__m": b"2"}), ("b", {"__m": b"4"})]

    for stream in (crude(path), crude(path).shuffle(0)):
        found = [
            (one["__key__"], {part: data for part, data in one.items() if isinstance(data, bytes)})
            for one in stream
        ]
        assert sorted(found, key=lambda one: one[0]) == wanted
    rows = list(crude(path).index())
    assert [(row["key"], list(row["parts"])) for row in rows] == [
        (key, list(parts)) for key, parts in wanted
    ]


def test_a_part_with_the_name_of_a_fact_is_refused(tmp_path):
    path = write_tar(tmp_path / "k.tar", [("a.txt", b"1"), ("a.__key__", b"2")])
    for stream in (crude(path), crude(path).shuffle(0)):
        with pytest.raises(DuplicateKeyError, match=r"a.__key__"):
            list(stream)


def test_a_shard_that_is_replaced_before_it_is_opened_is_refused(tmp_path):
    path = write_tar(tmp_path / "r.tar", samples("a", 0, 4))
    access = crude(path).stage.access(ReadContext(0, FailureHandler()))
    with access.opened() as items:
        write_tar(tmp_path / "new.tar", samples("b", 0, 4)).replace(path)
        with pytest.raises(IndexOutdatedError, match=r"r.tar: there is no sample at byte 0"):
            items.item(0)
        with pytest.raises(IndexOutdatedError, match=r"r.tar: there is no sample at byte 2,048"):
            items.item(1)


def test_many_shards_are_opened_again_and_compared_with_the_index(tmp_path, monkeypatch):
    for module in ("filestores.tars.open_shards", "filestores.tar_store", "cooking.crude_tars"):
        monkeypatch.setattr(f"dagster_dataops.training.{module}.MAX_KEPT", 1)
    for shard in range(3):
        write_tar(tmp_path / "many" / f"{shard}.tar", samples("k", shard * 4, 4))
    stream = crude(tmp_path / "many")
    found = list(stream)
    store = stream.stage.store()

    assert sorted(stream.shuffle(0, seed=1), key=lambda one: one["__key__"]) == found
    assert [store.get(f"{one['__key__']}.txt") for one in found] == [one["txt"] for one in found]
    write_tar(tmp_path / "many" / "1.tar", samples("x", 4, 4))
    with pytest.raises(IndexOutdatedError, match=r"1.tar"):
        store.get("k00005.txt")
    with pytest.raises(IndexOutdatedError, match=r"1.tar"):
        list(stream.shuffle(0, seed=1))


def test_a_shard_that_is_replaced_while_rows_are_held_gives_its_old_samples(tmp_path):
    path = write_tar(tmp_path / "r.tar", samples("a", 0, 4))
    wanted = list(crude(path).shuffle(0, seed=1))
    reading = iter(crude(path).shuffle(0, seed=1))
    found = [next(reading)]
    write_tar(tmp_path / "new.tar", samples("b", 0, 9)).replace(path)

    assert [*found, *reading] == wanted
    assert {one["__key__"][0] for one in crude(path).shuffle(0, seed=1)} == {"b"}


def test_samples_behind_a_shard_that_is_gone_are_those_of_their_own_shard(tmp_path):
    for number in range(3):
        write_tar(tmp_path / f"{number}.tar", samples("a", 3 * number, 3))
    stream = crude(tmp_path)
    assert len(list(stream)) == 9
    (tmp_path / "1.tar").unlink()

    found = [
        (sample["__key__"], sample["__shard__"], sample["txt"])
        for sample in stream.and_return(on_error="skip")
    ]
    assert found == [
        (f"a{number:05d}", f"{number // 3}.tar", b"caption %d" % number)
        for number in (0, 1, 2, 6, 7, 8)
    ]
