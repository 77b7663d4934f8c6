from itertools import islice

import pytest

from dagster_dataops import metadataset, traverse_metadataset
from dagster_dataops.errors import MetadatasetError
from tests.training.cooking.mixtures import cook_text, dataset, store, written

OLD = """
splits:
  train:
    datasets:
      - {path: a, weight: 3, subflavors: {x: 1, y: 1}}
      - {path: b, subflavor: old}
  val:
    datasets:
      - {path: a, split_part: train, dataset_config: dataset.yaml}
      - {path: inner.yaml, split_part: train, subflavors: {y: 2}}
"""
HEAD_1 = "__module__: megatron.energon\n__class__: Metadataset"
INNER = "  train: {path: c, subflavors: {y: 1, z: 3}, aux: {media: 'filesystem://media'}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def old(folder, text=OLD, head=HEAD_1):
    path = folder / "old.yaml"
    path.write_text(head + text)
    return path


@pytest.mark.parametrize("head", [HEAD_1, ""])
def test_datasets_of_version_1_are_blended_by_weight(folder, head):
    dataset(folder / "a", 4)
    dataset(folder / "b", 4)
    mix = metadataset(old(folder, head=head), cookers=cook_text, seed=1)

    assert [(leaf.name, leaf.weight) for leaf in mix.leaves] == [("a", 0.75), ("b", 0.25)]
    assert [dict(leaf.subflavors) for leaf in mix.leaves] == [
        {"x": 1, "y": 1},
        {"__subflavor__": "old"},
    ]
    assert {one.text[0] for one in islice(mix, 50)} == {"a", "b"}


def test_files_of_both_versions_can_contain_one_another(folder):
    dataset(folder / "a", 2)
    dataset(folder / "c", 3)
    store(folder / "media", 1)
    written(folder, INNER, "inner.yaml")
    val = metadataset(
        old(folder), split="val", cookers=lambda sample, media=None: cook_text(sample)
    )

    assert [one.text for one in val] == ["a 0", "a 1", "c 0", "c 1", "c 2"]
    outer = written(folder, "  val: {path: old.yaml}\n", "outer.yaml")
    assert len(list(metadataset(outer, split="val"))) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nsplits: {train: {datasets: [{path: a, aux: {}}]}}", "version 1 has no such key"),
        ("\nsplits: {train: {blend: [{path: a}]}}", "version 1 has no such key"),
        ("\nsplits: {train: {datasets: [{path: a, weights: 1}]}}", "did you mean 'weight'"),
        ("\nsplits: {train: {datasets: [{path: a, weight: 0}]}}", "above 0"),
        ("\nsplits: {train: {datasets: []}}", "empty list"),
        ("\nsplits: {train: {}}", "'datasets' is missing"),
        ("\nsplits: {train: {datasets: [{weight: 1}]}}", "missing"),
    ],
)
def test_mistakes_in_version_1_name_their_place(folder, text, message):
    with pytest.raises(MetadatasetError, match=message):
        metadataset(old(folder, text))


def test_a_file_without_a_class_is_of_version_1_only_with_its_keys(folder):
    with pytest.raises(MetadatasetError, match="'__class__: MetadatasetV2' is missing"):
        metadataset(old(folder, "\nsplits: {train: {path: a}}", head=""))
    with pytest.raises(MetadatasetError, match="or Metadataset of version 1"):
        metadataset(old(folder, head="__module__: megatron.energon\n__class__: Metadataset3"))


def test_the_datasets_of_nested_files_are_listed_without_opening_them(folder):
    written(folder, INNER, "inner.yaml")
    leaves = traverse_metadataset(old(folder), split_part="val")

    assert [leaf.path for leaf in leaves] == [f"{folder}/a", f"{folder}/c"]
    assert [leaf.split_part for leaf in leaves] == ["train", "train"]
    assert leaves[1].subflavors == {"y": 2, "z": 3}
    assert leaves[1].aux == {"media": f"filesystem://{folder}/media"}
    assert leaves[1].file == f"{folder}/inner.yaml"
    joined = written(
        folder,
        "  train:\n    join: [{path: a}, {path: b}]\n"
        "    joiner: {__module__: dagster_dataops, __class__: CrudeSample}\n",
    )
    assert [leaf.name for leaf in traverse_metadataset(joined)] == ["a", "b"]
    with pytest.raises(MetadatasetError, match="has no split 'test'"):
        traverse_metadataset(joined, split_part="test")
    content = {
        "__module__": "dagster_dataops",
        "__class__": "MetadatasetV2",
        "splits": {"train": {"path": "/x", "aux": {"a": "nope://b"}}},
    }
    with pytest.raises(MetadatasetError, match="nope"):
        traverse_metadataset(content)
