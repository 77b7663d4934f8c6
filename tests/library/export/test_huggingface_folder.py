"""Tests of ``export.HuggingFace``: `datasets` reads the folder from disk and as a data set."""

from pathlib import Path

import datasets
import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError, StorageError
from tests.datasets.exporters.folders import names_in

RECORDS = [{"text": f"text {n}", "n": n, "tags": ["a"] * (n % 3)} for n in range(3000)]


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def test_the_folder_is_read_from_disk_and_as_a_data_set(tmp_path):
    folder = data.export.HuggingFace(tmp_path / "corpus", shard_bytes=40_000)(RECORDS)

    from_disk = datasets.load_from_disk(folder)
    assert list(from_disk) == ["train"]
    assert from_disk["train"].to_list() == RECORDS
    loaded = datasets.load_dataset(folder, split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == RECORDS
    shards = sorted(Path(folder, "train").glob("*.arrow"))
    assert len(shards) == 3
    assert shards[0].name == "data-00000-of-00003.arrow"
    assert from_disk["train"].map(lambda row: {"n": row["n"] + 1})[0]["n"] == 1


def test_split_and_types_are_chosen(tmp_path):
    options = {"split": "validation", "schema": {"n": "int32", "tags": "json"}}
    folder = data.export.HuggingFace(tmp_path / "corpus", **options)(RECORDS[:2])

    found = datasets.load_from_disk(folder)["validation"]
    assert found.features["n"].dtype == "int32"
    assert found["tags"] == ["[]", '["a"]']
    with pytest.raises(DefinitionError, match="split is 'a b'"):
        data.export.HuggingFace("x", split="a b")
    with pytest.raises(DefinitionError, match="'shard_bytes' must be at least 1; got 0"):
        data.export.HuggingFace("x", shard_bytes=0)


def test_no_records_make_an_empty_data_set(tmp_path):
    folder = data.export.HuggingFace(tmp_path / "corpus", schema={"text": "string"})([])

    assert len(datasets.load_from_disk(folder)["train"]) == 0


def test_another_export_replaces_the_folder_and_leaves_no_file_of_it(tmp_path):
    folder = data.export.HuggingFace(tmp_path / "corpus", shard_bytes=40_000)(RECORDS)
    data.export.HuggingFace(tmp_path / "corpus", split="test")(RECORDS[:5])

    assert list(datasets.load_from_disk(folder)) == ["test"]
    assert not (tmp_path / "corpus" / "train").exists()
    assert names_in(tmp_path) == ["corpus", "results"]


def test_a_folder_with_other_files_is_refused_and_kept(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "thesis.txt").write_text("years of work")

    with pytest.raises(StorageError, match=r"no export wrote \(thesis.txt\)"):
        data.export.HuggingFace(tmp_path / "corpus")(RECORDS[:1])
    assert names_in(tmp_path / "corpus") == ["thesis.txt"]


def test_a_value_of_another_type_keeps_the_earlier_export(tmp_path):
    folder = data.export.HuggingFace(tmp_path / "corpus")(RECORDS[:1])

    with pytest.raises(ExportError, match="column 'n'"):
        data.export.HuggingFace(tmp_path / "corpus")([*RECORDS[:2], {"n": "three"}])
    assert datasets.load_from_disk(folder)["train"].to_list() == RECORDS[:1]
