"""Features of ``export.HuggingFace``, read back by `datasets`."""

import datasets
import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError

CLASSES = ["no", "yes"]
RECORDS = [
    {
        "label": None if n == 7 else CLASSES[n % 2],
        "tools": [{"name": "a", "default": None}] if n % 2 else {"b": [1, "x", None]},
        "input_ids": [n, n + 1],
        "labels": [-100, n],
    }
    for n in range(1500)
]


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def exported(place, records, **features) -> datasets.Dataset:
    folder = data.export.HuggingFace(place / "corpus", features=features)(records)
    return datasets.load_from_disk(folder)["train"]


def test_classes_json_and_lists_come_back_as_they_were(tmp_path):
    found = exported(tmp_path, RECORDS, label=CLASSES, tools="json", input_ids="list<int32>")

    assert found.features["label"] == datasets.ClassLabel(names=CLASSES)
    assert found.features["input_ids"] == datasets.List(datasets.Value("int32"))
    assert found.features["labels"] == datasets.List(datasets.Value("int64"))
    numbers = {"no": 0, "yes": 1, None: None}
    assert found.to_list() == [{**one, "label": numbers[one["label"]]} for one in RECORDS]
    loaded = datasets.load_dataset(
        str(tmp_path / "corpus"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.features == found.features
    assert loaded[1]["tools"] == RECORDS[1]["tools"]


def test_numbers_of_classes_are_taken_as_they_are(tmp_path):
    found = exported(tmp_path, [{"label": 1}, {"label": -1}, {"label": None}, {}], label=CLASSES)

    assert found["label"] == [1, -1, None, None]
    assert len(exported(tmp_path, [], label=CLASSES)) == 0


@pytest.mark.parametrize("value", ["maybe", 2, -2, True, 0.5, [1]])
def test_a_value_that_is_no_class_fails_with_its_line(tmp_path, value):
    good = value if type(value) in {bool, float, list} else 1 if type(value) is int else "no"
    records = [{"label": good}] * 1200 + [{"label": value}]
    with pytest.raises(ExportError, match=r"column 'label': it holds .*the classes are no, yes"):
        exported(tmp_path, records, label=CLASSES)


@pytest.mark.parametrize(
    "features",
    [{"a": []}, {"a": ["x", "x"]}, {"a": [1]}, {"a": 1}, {"a": "no type"}, ["a"], {"b": "int32"}],
)
def test_other_features_are_refused(features):
    with pytest.raises(DefinitionError, match="features|schema"):
        data.export.HuggingFace("x", schema={"b": "int64"}, features=features)
