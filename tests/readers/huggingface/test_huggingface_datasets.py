"""Tests of dagster_dataops.readers.huggingface.huggingface_datasets."""

import datetime as dt
import json
import sys
from itertools import islice

import pytest

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere

datasets = pytest.importorskip("datasets")
pa = pytest.importorskip("pyarrow")

ROWS = [{"n": n, "text": f"t{n}", "tags": [str(n)]} for n in range(2500)]


@pytest.fixture
def dataset():
    return datasets.Dataset.from_list(ROWS)


def test_a_data_set_in_memory_is_read(dataset):
    assert list(readers.read_huggingface(dataset)) == ROWS
    assert list(islice(readers.read_huggingface(dataset, ["text", "n"]), 1)) == [
        {"text": "t0", "n": 0}
    ]


def test_one_that_was_saved_is_read_and_is_the_same(dataset, tmp_path):
    dataset.save_to_disk(tmp_path / "saved")
    stream = readers.read_huggingface(tmp_path / "saved").and_return()
    assert list(islice(stream, 1200)) == ROWS[:1200]
    again = readers.read_huggingface(dataset).and_return()
    again.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert list(again) == ROWS[1200:]


def test_it_resumes_anywhere(dataset):
    few = dataset.select(range(20))
    assert_resumes_anywhere(lambda: readers.read_huggingface(few).shuffle(4, seed=1).repeat(2))


def test_the_order_of_a_shuffled_one_is_its_own(dataset):
    shuffled = dataset.shuffle(seed=1)
    assert list(readers.read_huggingface(shuffled)) == list(shuffled)
    stream = readers.read_huggingface(dataset).and_return()
    next(iter(stream))
    state = stream.state_dict()
    with pytest.raises(errors.StreamStateError, match="data"):
        readers.read_huggingface(shuffled).and_return().load_state_dict(state)


def test_values_become_json():
    made = datasets.Dataset.from_dict({"day": [dt.date(2026, 1, 31), None], "raw": [b"x", None]})
    expected = [{"day": "2026-01-31", "raw": "eA=="}, {"day": None, "raw": None}]
    assert list(readers.read_huggingface(made)) == expected


def test_an_object_that_is_not_a_hugging_face_dataset_is_refused(dataset, tmp_path):
    with pytest.raises(errors.StreamArgumentError, match="is a list; it must be a datasets"):
        readers.read_huggingface(ROWS)
    with pytest.raises(errors.StreamArgumentError, match="IterableDataset"):
        readers.read_huggingface(dataset.to_iterable_dataset())
    splits = datasets.DatasetDict({"train": dataset, "test": dataset})
    with pytest.raises(errors.StreamSourceError, match=r"read one of them: \['test', 'train'\]"):
        list(readers.read_huggingface(splits))
    with pytest.raises(errors.StreamSourceError, match="none: cannot be loaded as a dataset"):
        list(readers.read_huggingface(tmp_path / "none"))
    with pytest.raises(errors.StreamSourceError, match="no column 'x'"):
        list(readers.read_huggingface(dataset, ["x"]))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[huggingface\]"):
        readers.read_huggingface("folder")


def test_values_of_the_feature_json_are_what_they_say(tmp_path):
    features = datasets.Features(
        {"m": datasets.List({"role": datasets.Value("string"), "content": datasets.Json()})}
    )
    rows = [{"m": [{"role": "user", "content": content}]} for content in ["hi", [{"a": 1}], None]]
    made = datasets.Dataset.from_list(rows, features=features)
    made.save_to_disk(tmp_path / "saved")

    assert list(readers.read_huggingface(made)) == list(made) == rows
    assert list(readers.read_huggingface(tmp_path / "saved")) == rows


def test_a_row_that_json_cannot_hold_is_named_and_passed_over():
    made = datasets.Dataset.from_dict({"x": [1.0, float("nan"), 3.0]})

    stream = readers.read_huggingface(made).and_return(on_error="quarantine")

    assert list(stream) == [{"x": 1.0}, {"x": 3.0}]
    assert "Dataset in memory, row 2: column 'x'" in stream.quarantined[0]["message"]
    assert list(readers.read_huggingface(made, missing=["nan"]))[1] == {"x": None}


def test_the_first_row_may_hold_a_time_that_python_cannot_hold():
    times = pa.array([2**62, 0], type=pa.int64()).cast(pa.timestamp("us"))
    made = datasets.Dataset(pa.table({"n": [1, 2], "time": times}))

    stream = readers.read_huggingface(made).and_return(on_error="skip")

    assert [row["n"] for row in stream] == [2]
    assert stream.state_dict()
