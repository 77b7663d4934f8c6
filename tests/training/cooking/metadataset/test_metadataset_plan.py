import pytest

from dagster_dataops.errors import MetadatasetError
from dagster_dataops.training.cooking.metadataset.metadataset_plan import (
    PlannedDataset,
    PlannedJoin,
    PlannedMixture,
    plan,
)
from tests.training.cooking.mixtures import written


@pytest.fixture
def write(tmp_path):
    return lambda name, text: written(tmp_path, text, name)


def dataset(planned):
    assert isinstance(planned, PlannedDataset)
    return planned


def test_paths_are_relative_to_their_file(write, tmp_path):
    (tmp_path / "in").mkdir()
    write("in/inner.yaml", "  train:\n    path: ../data/a\n    aux: {m: ./m}\n")
    path = write("outer.yaml", "  train: {path: ./in/inner.yaml}\n")

    found = dataset(plan(path, "train", training=True))

    assert (found.path, found.base) == (f"{tmp_path}/data/a", f"{tmp_path}/in")
    assert found.split_part == "train"


def test_an_absolute_path_and_a_url_stay(write):
    path = write("m.yaml", "  a: {path: /x/a}\n  b: {path: 's3://bucket/b'}\n")

    assert dataset(plan(path, "a", training=True)).path == "/x/a"
    assert dataset(plan(path, "b", training=True)).path == "s3://bucket/b"


def test_outer_subflavors_win(write):
    write("inner.yaml", "  train: {path: a, subflavors: {x: {p: 1, q: 2}, y: 1, z: 1}}\n")
    write("middle.yaml", "  train: {path: inner.yaml, subflavors: {y: 2, z: 2}}\n")
    path = write("outer.yaml", "  train: {path: middle.yaml, subflavors: {x: {p: 9}, z: 3}}\n")

    assert dataset(plan(path, "train", training=True)).subflavors == {"x": {"p": 9}, "y": 2, "z": 3}


def test_the_split_of_a_nested_file_can_be_chosen(write):
    write("inner.yaml", "  mine: {path: a}\n  train: {path: b}\n")
    path = write("outer.yaml", "  train: {path: inner.yaml, split_part: mine}\n")

    found = dataset(plan(path, "train", training=True))

    assert (found.path.rpartition("/")[2], found.split_part) == ("a", "mine")


@pytest.mark.parametrize(
    ("inner", "outer", "count", "rows"),
    [
        ("[20%, 80%]", None, 55, range(11, 44)),
        ("[10, 30]", None, 55, range(10, 30)),
        ("[10, 30]", "[20%, 80%]", 55, range(14, 26)),
        ("[50, end]", None, 55, range(50, 55)),
        ("[0, 50%]", "[50%, end]", 10, range(2, 5)),
    ],
)
def test_an_outer_range_lies_in_the_inner_one(write, inner, outer, count, rows):
    path = write("inner.yaml", f"  train: {{path: a, subset: {{range: {inner}}}}}\n")
    if outer:
        text = f"  train: {{path: inner.yaml, subset: {{range: {outer}}}}}\n"
        path = write("outer.yaml", text)

    assert dataset(plan(path, "train", training=True)).rows(count) == rows


def test_the_range_of_a_blend_is_that_of_each_dataset(write):
    text = "  train:\n    blend: [{path: a}, {path: b}]\n    subset: {range: [0%, 10%]}\n"
    found = plan(write("m.yaml", text), "train", training=True)

    assert isinstance(found, PlannedMixture)
    assert [dataset(part).rows(100) for part in found.parts] == [range(10), range(10)]


def test_a_range_beyond_the_end_names_both_numbers(write):
    path = write("m.yaml", "  train: {path: a, subset: {range: [50, 90]}}\n")

    with pytest.raises(MetadatasetError, match=r"line 4 .*sample 90, and .*/a has 55"):
        dataset(plan(path, "train", training=True)).rows(55)


def test_without_training_everything_is_concatenated(write):
    write("inner.yaml", "  val:\n    blend: [{path: a}, {path: b}]\n")
    text = "  val:\n    blend_epochized: [{path: inner.yaml, repetitions: 2}, {path: c}]\n"
    found = plan(write("m.yaml", text), "val", training=False)

    assert isinstance(found, PlannedMixture)
    assert isinstance(found.parts[0], PlannedMixture)
    assert (found.kind, found.parts[0].kind) == ("concat", "concat")


def test_a_join_keeps_the_names_of_its_datasets(write, tmp_path):
    text = (
        "  train:\n    join: {x: {path: a}, y: {path: b}}\n    subflavors: {k: 1}\n"
        "    joiner: {__module__: m, __class__: C}\n"
    )
    found = plan(write("m.yaml", text), "train", training=True)

    assert isinstance(found, PlannedJoin)
    assert found.parts["y"].path == f"{tmp_path}/b"
    assert found.whole.subflavors == {"k": 1}


JOINER = "{__module__: m, __class__: C}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  train: {path: inner.yaml, subset: {range: [1, 3]}}\n", "only"),
        ("  train:\n    blend: [{path: a}]\n    subset: {range: [1, 3]}\n", "leaf dataset"),
        ("  train: {path: inner.yaml, aux: {m: x}}\n", "'m' belongs to the dataset in"),
        ("  train: {path: inner.yaml, split_part: tain}\n", "'tain'; did you mean 'train'"),
        ("  train: {path: nowhere.yaml}\n", "nowhere.yaml"),
        (
            "  train:\n    join: [{path: a}, {path: inner.yaml}]\n    joiner: " + JOINER,
            "joins datasets, not metadatasets",
        ),
        (
            "  train:\n    join: [{path: a, aux: {m: x}}, {path: b, aux: {m: y}}]\n    joiner: "
            + JOINER,
            "has a store 'm', too",
        ),
        ("  train: {path: m.yaml}\n", "contains itself"),
        ("  train:\n    blend_epochized: [{path: inner.yaml}]\n", "cannot mix blend with blend_e"),
        ("  train:\n    concat: [{path: inner.yaml}, {path: a}]\n", "cannot mix blend with concat"),
    ],
)
def test_an_invalid_nesting_is_refused(write, text, words):
    write("inner.yaml", "  train:\n    blend: [{path: a}]\n")
    path = write("m.yaml", text)

    with pytest.raises(MetadatasetError, match=words):
        plan(path, "train", training=True)


def test_a_missing_split_names_those_that_exist(write):
    path = write("m.yaml", "  train: {path: a}\n  val: {path: a}\n")

    with pytest.raises(MetadatasetError, match="no split 'other'; its splits: train, val"):
        plan(path, "other", training=True)


def test_a_missing_file_is_named():
    with pytest.raises(MetadatasetError, match=r"nowhere.yaml"):
        plan("/nowhere.yaml", "train", training=True)


def test_the_content_can_be_given_as_a_dict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = {
        "__module__": "dagster_dataops",
        "__class__": "MetadatasetV2",
        "splits": {"train": {"path": "./a"}},
    }

    assert dataset(plan(content, "train", training=True)).path == f"{tmp_path}/a"
