import gc
import multiprocessing
import os
import pickle
from itertools import islice

import orjson
import pytest

from dagster_dataops import (
    DefaultTaskEncoder,
    FileStoreCachePool,
    NoCachePool,
    basic_sample_keys,
    cooker,
    get_savable_loader,
    get_train_dataset,
)
from dagster_dataops.errors import StreamSourceError
from tests.training.cooking.mixtures import dataset


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_value_is_kept_in_a_file_as_long_as_it_is_needed(tmp_path):
    pool = FileStoreCachePool(parent_cache_dir=tmp_path)
    value = {"pixels": list(range(1000))}
    kept, raw = pool.to_cache(value, "image 1"), pool.to_cache(b"bytes", "b")

    assert kept.get() == kept.get({}) == value
    assert kept.get() is not value
    assert raw.get() == b"bytes"
    assert (kept.name, repr(kept)) == ("image 1", "KeptValue('image 1')")
    assert len(files(tmp_path)) == 2
    del kept, raw
    gc.collect()
    assert files(tmp_path) == []


def test_a_value_stays_in_memory_without_a_folder(tmp_path):
    assert NoCachePool().to_cache([1], "x").get() == [1]
    (tmp_path / "file").write_text("")
    assert FileStoreCachePool(parent_cache_dir=tmp_path / "file").to_cache([1], "x").get() == [1]


@pytest.mark.slow
def test_a_value_can_be_sent_but_not_written(tmp_path):
    kept = FileStoreCachePool(parent_cache_dir=tmp_path).to_cache([1], "x")
    sent = pickle.loads(pickle.dumps(kept))

    assert (sent.get(), sent.name) == ([1], "x")
    assert len(files(tmp_path)) == 2
    del kept
    gc.collect()
    assert sent.get() == [1]
    with pytest.raises(TypeError):
        orjson.dumps({"value": sent})
    assert pickle.loads(pickle.dumps(NoCachePool().to_cache(b"raw", "x"))).get() == b"raw"


@cooker(need_cache=True)
def put(sample, cache):
    value = {"text": sample["txt"].decode(), "process": os.getpid()}
    return {**basic_sample_keys(sample), "value": cache.to_cache(value, "text")}


class Putting(DefaultTaskEncoder):
    """Values are put aside where samples are encoded, and read where they are packed."""

    cookers = (put,)

    def select_samples_to_pack(self, samples):
        return [samples]

    def pack_selected_samples(self, samples):
        return {"values": [sample["value"].get() for sample in samples]}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_workers_send_values_to_the_training_process(tmp_path, num_workers):
    dataset(tmp_path / "a", 20)
    data = get_train_dataset(tmp_path / "a", task_encoder=Putting(), packing_buffer_size=5)
    pool = FileStoreCachePool(parent_cache_dir=tmp_path / "cache")
    with get_savable_loader(data, num_workers=num_workers, cache_pool=pool) as loader:
        values = [value for pack in islice(loader, 4) for value in pack["values"]]

    assert [value["text"] for value in values] == [f"a {n}" for n in range(20)]
    assert (os.getpid() in {value["process"] for value in values}) == (num_workers == 0)


def test_a_file_that_was_changed_is_not_unpickled(tmp_path):
    kept = FileStoreCachePool(parent_cache_dir=tmp_path).to_cache([1], "x")
    (path,) = files(tmp_path)
    path.write_bytes(pickle.dumps([2]))
    with pytest.raises(StreamSourceError, match="'x' was changed"):
        kept.get()
    path.unlink()
    with pytest.raises(StreamSourceError, match="cannot be read"):
        kept.get()


def test_the_values_of_processes_that_ended_are_deleted(tmp_path):
    here = f"values-{os.uname().nodename}"
    old = tmp_path / f"{here}-999999999-x"
    old.mkdir()
    (old / "v").write_text("")
    others = [tmp_path / f"{here}-mine-x", tmp_path / "values-another.machine-999999999-x"]
    for one in others:
        one.mkdir()
    FileStoreCachePool(parent_cache_dir=tmp_path).to_cache([1], "x")

    assert not old.exists()
    assert all(one.exists() for one in others)


def _drop(kept):
    kept.clear()
    gc.collect()


@pytest.mark.slow
def test_a_fork_does_not_delete_the_values_of_its_parent(tmp_path):
    kept = [FileStoreCachePool(parent_cache_dir=tmp_path).to_cache([1], "x")]
    process = multiprocessing.get_context("fork").Process(target=_drop, args=(kept,))
    process.start()
    process.join()
    assert kept[0].get() == [1]
