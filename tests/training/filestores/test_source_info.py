"""Tests of dagster_dataops.training.filestores.source_info."""

import pickle

import pytest

from dagster_dataops import SourceInfo, file_store
from dagster_dataops.records import encode

ONE = SourceInfo.of("d", 3, "s.tar", ["a.txt"])


def test_its_keys_are_attributes_and_it_is_json():
    assert (ONE.dataset_path, ONE["index"]) == ("d", 3)
    assert encode({"s": ONE}).startswith(b'{"s":{"dataset_path":"d","index":3')
    assert pickle.loads(pickle.dumps(ONE)).shard_name == "s.tar"
    with pytest.raises(AttributeError):
        _ = ONE.path


def test_a_source_is_added_once_to_a_new_list(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    store, before = file_store(tmp_path), []
    sample = {"__sources__": before}

    assert store.get("a.txt", sample) == store.get("a.txt", sample) == b"a"

    assert before == []
    assert sample["__sources__"] == [store["a.txt"][1]]
