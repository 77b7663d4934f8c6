"""Tests of dagster_dataops.training.filestores.source_info."""

import pickle

import pytest

from dagster_dataops import SourceInfo
from dagster_dataops.records import encode
from dagster_dataops.training.filestores.source_info import add_source_info

ONE = SourceInfo.of("d", 3, "s.tar", ["a.txt"])


def test_its_keys_are_attributes_and_it_is_json():
    assert (ONE.dataset_path, ONE["index"]) == ("d", 3)
    assert encode({"s": ONE}).startswith(b'{"s":{"dataset_path":"d","index":3')
    assert pickle.loads(pickle.dumps(ONE)).shard_name == "s.tar"
    with pytest.raises(AttributeError):
        _ = ONE.path


def test_a_source_is_added_once_to_a_new_list():
    before = []
    sample = {"__sources__": before}

    add_source_info(sample, ONE)
    add_source_info(sample, ONE)

    assert before == []
    assert sample["__sources__"] == [ONE]
