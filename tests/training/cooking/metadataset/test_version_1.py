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


def old(folder, text=OLD, head=HEAD_1):
    path = folder / "old.yaml"
    path.write_text(head + text)
    return path


@pytest.mark.parametrize("head", [HEAD_1, ""])
def test_datasets_of_version_1_are_blended_by_weight(tmp_path, head):
    dataset(tmp_path / "a", 4)
    dataset(tmp_path / "b", 4)
    mix = metadataset(old(tmp_path, head=head), cookers=cook_text, seed=1)

    assert [(leaf.name, leaf.weight) for leaf in mix.leaves] == [("a", 0.75), ("b", 0.25)]
    assert [dict(leaf.subflavors) for leaf in mix.leaves] == [
        {"x": 1, "y": 1},
        {"__subflavor__": "old"},
    ]
    assert {one.text[0] for one in islice(mix, 50)} == {"a", "b"}


def test_files_of_both_versions_can_contain_one_another(tmp_path):
    dataset(tmp_path / "a", 2)
    dataset(tmp_path / "c", 3)
    store(tmp_path / "media", 1)
    written(tmp_path, INNER, "inner.yaml")
    val = metadataset(
        old(tmp_path), split="val", cookers=lambda sample, media=None: cook_text(sample)
    )

    assert [one.text for one in val] == ["a 0", "a 1", "c 0", "c 1", "c 2"]
    outer = written(tmp_path, "  val: {path: old.yaml}\n", "outer.yaml")
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
def test_mistakes_in_version_1_name_their_place(tmp_path, text, message):
    with pytest.raises(MetadatasetError, match=message):
        metadataset(old(tmp_path, text))


def test_a_file_without_a_class_is_of_version_1_only_with_its_keys(tmp_path):
    with pytest.raises(MetadatasetError, match="'__class__: MetadatasetV2' is missing"):
        metadataset(old(tmp_path, "\nsplits: {train: {path: a}}", head=""))
    with pytest.raises(MetadatasetError, match="or Metadataset of version 1"):
        metadataset(old(tmp_path, head="__module__: megatron.energon\n__class__: Metadataset3"))


def test_the_datasets_of_nested_files_are_listed_without_opening_them(tmp_path):
    written(tmp_path, INNER, "inner.yaml")
    leaves = traverse_metadataset(old(tmp_path), split_part="val")

    assert [leaf.path for leaf in leaves] == [f"{tmp_path}/a", f"{tmp_path}/c"]
    assert [leaf.split_part for leaf in leaves] == ["train", "train"]
    assert leaves[1].subflavors == {"y": 2, "z": 3}
    assert leaves[1].aux == {"media": f"filesystem://{tmp_path}/media"}
    assert leaves[1].file == f"{tmp_path}/inner.yaml"
    joined = written(
        tmp_path,
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
