import pickle
from fractions import Fraction

import pytest

from dagster_dataops.errors import MetadatasetError
from dagster_dataops.training.cooking.joined_samples import Joiner
from dagster_dataops.training.cooking.metadataset.metadataset_grammar import (
    Join,
    Mixture,
    Reference,
    splits_of,
)
from dagster_dataops.training.cooking.metadataset.metadataset_nodes import parse

HEAD = "__module__: megatron.energon\n__class__: MetadatasetV2\nsplits:\n"


def parsed(text, head=HEAD):
    return splits_of(parse(head + text, "mix.yaml"))


def test_a_dataset_has_every_key_of_the_grammar():
    (made,) = parsed(
        "  train:\n    path: ./a\n    split_part: test\n    subflavors: {x: {y: 1}, z: yes}\n"
        "    aux: {media: 'filesystem://./m'}\n    subset: {range: [10, end]}\n"
        "    dataset_config: crude.yaml\n    split_config: other.yaml\n"
        "    shuffle_over_epochs_multiplier: null\n"
    ).values()

    assert isinstance(made, Reference)
    assert (made.path, made.split_part, made.subflavors) == (
        "./a",
        "test",
        {"x": {"y": 1}, "z": True},
    )
    assert made.aux["media"].text() == "filesystem://./m"
    assert made.subset is not None
    assert (made.subset.start, made.subset.end) == (10, Fraction(1))
    assert (made.dataset_config, made.split_config) == ("crude.yaml", "other.yaml")


def test_a_multiplier_without_effect_is_named_in_the_log(caplog):
    text = "  train:\n    path: ./a\n    shuffle_over_epochs_multiplier: "
    for value in ("null", "1", "-1"):
        parsed(f"{text}{value}\n")
    (message,) = caplog.messages
    assert message.startswith("mix.yaml, line 6: shuffle_over_epochs_multiplier has no effect")


def test_lists_of_datasets_can_be_nested():
    made = parsed(
        "  train:\n    blend:\n      - path: a\n        weight: 3\n"
        "      - blend_epochized:\n          - {path: b, repetitions: 0.5}\n          - path: c\n"
        "        weight: 2\n    subset: {range: [12.5%, 100%]}\n"
        "  val:\n    concat: [{asset: d/e}]\n"
    )

    train, val = made["train"], made["val"]
    assert isinstance(train, Mixture)
    assert isinstance(val, Mixture)
    inner = train.parts[1]
    assert isinstance(inner, Mixture)
    assert (train.kind, train.amounts) == ("blend", (3, 2))
    assert (inner.kind, inner.amounts) == ("blend_epochized", (0.5, 1))
    assert val.kind == "concat"
    assert isinstance(val.parts[0], Reference)
    assert val.parts[0].is_asset
    assert train.subset is not None
    assert train.subset.within(80) == slice(10, 80)


def test_a_join_names_its_datasets():
    (made,) = parsed(
        "  train:\n    join:\n      text: {path: a}\n      image: {path: b, nonmatch: skip}\n"
        "    joiner: {__module__: my.module, __function__: joined}\n"
    ).values()

    assert isinstance(made, Join)
    assert list(made.parts) == ["text", "image"]
    assert made.nonmatch == {"text": "error", "image": "skip"}
    assert made.joiner == Joiner("my.module", "joined", ("text", "image"))


def test_an_anchor_can_be_merged():
    made = parsed(
        "  train:\n    blend:\n      - &one {path: a, weight: 2}\n      - {<<: *one, path: b}\n"
    )["train"]

    assert isinstance(made, Mixture)
    assert made.amounts == (2, 2)


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (
            "  a:\n    path: x\n    subflavours: {}\n",
            6,
            "a.subflavours",
            "did you mean 'subflavors'",
        ),
        ("  a:\n    path: x\n    split: val\n", 6, "a.split", "'split_part'"),
        ("  a:\n    path: x\n    path: y\n", 6, "a.path", "first in line 5"),
        ("  a:\n    path: x\n    weight: 1\n", 6, "a.weight", "unknown"),
        ("  a:\n    blend: []\n", 5, "a.blend", "empty"),
        ("  a:\n    blend: {path: x}\n", 5, "a.blend", "must be a list"),
        ("  a:\n    blend: [{path: x}]\n    aux: {}\n", 6, "a.aux", "each entry"),
        ("  a:\n    blend:\n      - {path: x, weight: 0}\n", 6, "a.blend[0].weight", "above 0"),
        ("  a:\n    blend:\n      - {path: x, weight: -1}\n", 6, "a.blend[0].weight", "-1"),
        ("  a:\n    blend:\n      - {path: x, weight: .nan}\n", 6, "a.blend[0].weight", "nan"),
        ("  a:\n    blend:\n      - {path: x, weight: one}\n", 6, "a.blend[0].weight", "'one'"),
        ("  a:\n    blend: [{path: x}]\n    concat: [{path: x}]\n", 6, "a.concat", "exclude"),
        ("  a:\n    datasets: [{path: x}]\n", 5, "a.datasets", "version 1"),
        ("  a: {}\n", 4, "a", "'path'"),
        ("  a:\n    path: 3\n", 5, "a.path", "must be a text, not 3"),
        ("  a:\n    path: x\n    aux: {m: [1]}\n", 6, "a.aux.m", "a list"),
        ("  a:\n    path: x\n    subset: {range: [1]}\n", 6, "a.subset.range", "1 element,"),
        ("  a:\n    path: x\n    subset: {range: [9, 2]}\n", 6, "a.subset.range", "below the end"),
        ("  a:\n    path: x\n    subset: {range: [0, 101%]}\n", 6, "a.subset.range[1]", "'101%'"),
        ("  a:\n    path: x\n    subset: {from: 2}\n", 6, "a.subset.from", "unknown"),
        ("  a:\n    path: x\n    shuffle_over_epochs_multiplier: 0\n", 6, "multiplier", "-1 or"),
        ("  a:\n    join: [{path: x}]\n", 5, "a.join", "at least two"),
        ("  a:\n    join: [{path: x}, {path: y}]\n", 4, "a", "'joiner' is missing"),
        (
            "  a:\n    join:\n    - {path: x, nonmatch: skip}\n    - {path: y}\n",
            6,
            "join[0].nonmatch",
            "the first dataset",
        ),
        (
            "  a:\n    join:\n    - {path: x}\n    - {path: y, nonmatch: no}\n",
            7,
            "join[1].nonmatch",
            "error, skip or none",
        ),
        (
            "  a:\n    join:\n    - {path: x}\n    - {path: y, subset: {range: [0, 1]}}\n",
            7,
            "join[1].subset.range",
            "beside 'join'",
        ),
    ],
)
def test_an_error_names_file_line_key_and_what_is_allowed(text, line, key, words):
    with pytest.raises(MetadatasetError) as caught:
        parsed(text)

    error = caught.value
    assert (error.file, error.line) == ("mix.yaml", line)
    assert error.key.endswith(key)
    assert words in str(error)
    assert str(error).startswith(f"mix.yaml, line {line} (splits.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("", "the file is empty"),
        ("- 1\n", "a metadataset is a mapping, not a list"),
        ("a: [\n", "not YAML"),
        ("__module__: megatron.energon\nsplits: {}\n", "'__class__: MetadatasetV2' is missing"),
        (HEAD.replace("V2", "V3"), "must be MetadatasetV2, or Metadataset of version 1, not"),
        (HEAD.replace("megatron.", "other."), "dagster_dataops or megatron.energon"),
        (HEAD.replace("splits:", "splits: {}"), "there are no splits"),
        (HEAD.replace("splits:", "split: {}"), "did you mean 'splits'?"),
    ],
)
def test_a_file_that_is_no_metadataset_is_refused(head, words):
    with pytest.raises(MetadatasetError, match=words):
        parsed("", head)
