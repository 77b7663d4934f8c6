import json
from collections import Counter
from itertools import islice

import pytest

from dagster_dataops import Cooker, config, crude, metadataset, prepare_energon
from dagster_dataops.errors import (
    CookerError,
    DataPipelineError,
    MetadatasetError,
    StreamStateError,
)
from dagster_dataops.testing import assert_resumes_anywhere
from tests.training.cooking.mixtures import cook_text, cook_with_file, dataset, store, written

BLEND = """  train:
    blend:
      - {path: ./a, weight: 7, subflavors: {leaf: a}}
      - {path: ./b, weight: 3, subflavors: {leaf: b}}
  val:
    blend: [{path: ./a}, {path: ./b}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    dataset(tmp_path / "a", 20, {"origin": "a"})
    dataset(tmp_path / "b", 10)
    return tmp_path


def texts(stream, limit=None):
    return [record["text"] for record in islice(stream, limit)]


def sources(found):
    return Counter(text.split()[0] for text in found)


def test_a_blend_has_the_shares_of_its_weights(folder):
    mix = metadataset(written(folder, BLEND), cookers=cook_text)

    assert 1318 < sources(texts(mix, 2000))["a"] < 1482
    assert [(leaf.name, leaf.weight, leaf.cooker) for leaf in mix.leaves] == [
        ("a", 0.7, "cook_text"),
        ("b", 0.3, "cook_text"),
    ]


@pytest.mark.slow
def test_a_blend_resumes_anywhere(folder):
    path = written(folder, BLEND)

    assert_resumes_anywhere(lambda: metadataset(path, cookers=cook_text, seed=3), limit=70)


def test_the_state_is_small_however_far_the_stream_was_read(folder):
    stream = metadataset(written(folder, BLEND), cookers=cook_text).and_return()
    sizes = []
    for count in (50, 5000):
        list(islice(stream, count))
        sizes.append(len(json.dumps(stream.state_dict()["position"])))

    assert sizes[1] < sizes[0] + 20  # more digits


def test_the_order_depends_on_the_seed(folder):
    path = written(folder, BLEND)
    first, again, other = (
        texts(metadataset(path, cookers=cook_text, seed=seed), 100) for seed in (3, 3, 4)
    )

    assert first == again != other
    assert first == texts(crude(path, seed=3).cook(cook_text), 100)


def test_an_evaluation_split_is_read_once_in_order(folder):
    found = texts(metadataset(written(folder, BLEND), split="val", cookers=cook_text))

    assert found == [*(f"a {number}" for number in range(20)), *(f"b {n}" for n in range(10))]


def test_a_nested_blend_multiplies_the_shares(folder):
    written(folder, BLEND.replace("7", "1").replace("3", "1"), "inner.yaml")
    dataset(folder / "c", 5)
    text = "  train:\n    blend: [{path: inner.yaml, weight: 8}, {path: c, weight: 2}]\n"

    mix = metadataset(written(folder, text))

    assert [(leaf.name, leaf.wanted) for leaf in mix.leaves] == [("a", 0.4), ("b", 0.4), ("c", 0.2)]


@pytest.mark.parametrize(
    ("repetitions", "counts"),
    [((2, 0.5), (40, 5)), ((0.7, 1.5), (14, 15)), ((0.29, 1), (5, 10)), ((0.01, 1), (0, 10))],
)
def test_an_epochized_blend_reads_each_dataset_so_often(folder, repetitions, counts):
    parts = ", ".join(
        f"{{path: {name}, repetitions: {times}}}"
        for name, times in zip("ab", repetitions, strict=True)
    )
    path = written(folder, f"  train:\n    blend_epochized: [{parts}]\n")
    mix = metadataset(path, cookers=cook_text)
    found = texts(mix)

    assert [sources(found)[name] for name in "ab"] == list(counts)
    assert [leaf.wanted for leaf in mix.leaves] == [count / sum(counts) for count in counts]
    assert_resumes_anywhere(lambda: metadataset(path, cookers=cook_text), limit=20)


def test_datasets_are_concatenated_and_ranges_are_read(folder):
    text = (
        "  train:\n    concat:\n      - {path: a, subset: {range: [18, end]}}\n"
        "      - {path: b, subset: {range: [20%, 40%]}}\n"
    )
    mix = metadataset(written(folder, text), cookers=cook_text)

    assert texts(mix) == ["a 18", "a 19", "b 2", "b 3"]
    assert [leaf.rows for leaf in mix.leaves] == [range(18, 20), range(2, 4)]


def test_each_dataset_has_its_own_stores_and_cooker(folder):
    store(folder / "media", 20)
    text = BLEND.replace("leaf: a}", "leaf: a}, aux: {media: 'filesystem://./media'}")
    cookers = [Cooker(cook_with_file, has_subflavors={"leaf": "a"}), cook_text]

    mix = metadataset(written(folder, text), cookers=cookers)
    found = texts(mix, 50)

    assert all((" + file " in one) is one.startswith("a ") for one in found)
    assert [leaf.cooker for leaf in mix.leaves] == ["cook_with_file", "cook_text"]
    assert mix.leaves[0].aux == {"media": f"filesystem://{folder}/media"}


def test_subflavors_of_the_file_add_to_those_of_the_dataset(folder):
    (sample, *_) = islice(metadataset(written(folder, BLEND), split="val"), 1)
    assert sample["__subflavors__"] == {"origin": "a"}

    leaf = metadataset(written(folder, BLEND)).leaves[0]
    assert leaf.subflavors == {"origin": "a", "leaf": "a"}


def test_a_dataset_that_no_cooker_takes_is_named_with_file_and_line(folder):
    cookers = [Cooker(cook_text, has_subflavors={"leaf": "b"})]

    with pytest.raises(CookerError, match=r"a \(train of mix.yaml:6\).*leaf='a'.*leaf='b'"):
        metadataset(written(folder, BLEND), cookers=cookers)


def test_datasets_that_differ_in_their_stores_alone_are_refused(folder):
    store(folder / "media", 1)
    text = "  train:\n    concat: [{path: a}, {path: a, aux: {media: ./media}}]\n"

    with pytest.raises(CookerError, match="give one of them another subflavor"):
        metadataset(written(folder, text), cookers=lambda sample, **stores: sample)


def test_a_dataset_can_be_named_twice(folder):
    mix = metadataset(written(folder, "  train:\n    concat: [{path: a}, {path: a}]\n"))

    assert [leaf.name for leaf in mix.leaves] == ["a", "a#2"]
    assert len(list(mix)) == 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  train: {path: nowhere}\n", "line 4 .*nowhere: there is no such file"),
        ("  train: {path: a, aux: {m: nowhere}}\n", r"aux.m\): .*nowhere"),
        ("  train: {path: a, aux: {m: 'foo+bar://x/y'}}\n", r"aux.m\): .*'foo\+bar' is unknown"),
        ("  train: {path: a, aux: {m: other.yaml}}\n", "not a metadataset"),
        ("  train: {path: a, subset: {range: [5, 21]}}\n", "sample 21, and .*/a has 20"),
        ("  train: {asset: nowhere/x}\n", "nothing was published|no .*results.jsonl"),
    ],
)
def test_a_dataset_or_store_that_cannot_be_opened_is_an_error_at_once(folder, text, words):
    with pytest.raises(MetadatasetError, match=words):
        metadataset(written(folder, text))


@pytest.mark.parametrize("name", ["split_part", "split_config", "dataset_config"])
def test_a_wrong_choice_among_the_files_of_a_dataset_is_named(folder, name):
    prepare_energon(folder / "a")
    text = f"  train:\n    path: ./a\n    {name}: other\n"

    with pytest.raises(MetadatasetError, match=rf"line 6 \(splits.train.{name}\): .*other"):
        metadataset(written(folder, text))


def test_an_empty_dataset_of_a_blend_is_named(folder):
    (folder / "empty.jsonl").write_text("")
    text = "  train:\n    blend: [{path: a}, {path: empty.jsonl}]\n"

    with pytest.raises(DataPipelineError, match=r"empty.jsonl \(train of mix.yaml:5\) gave no"):
        list(islice(metadataset(written(folder, text)), 50))


def test_a_result_of_this_package_can_be_a_dataset(folder, monkeypatch):
    monkeypatch.setattr(config, "data_process_path", folder / "results")
    result = folder / "results" / "docs" / "unique"
    result.mkdir(parents=True)
    (result / "unique_results.jsonl").write_text('{"text":"x"}\n{"text":"y"}\n')

    mix = metadataset(written(folder, "  train: {asset: docs/unique}\n"))

    assert [json.loads(sample["json"])["text"] for sample in mix] == ["x", "y"]
    assert mix.leaves[0].is_asset


def test_a_state_can_be_loaded_with_other_weights(folder):
    first = metadataset(written(folder, BLEND), cookers=cook_text).and_return()
    found = texts(first, 100)
    state = json.loads(json.dumps(first.state_dict()))
    changed = BLEND.replace("weight: 7", "weight: 0.01")
    second = metadataset(written(folder, changed), cookers=cook_text).and_return()
    with pytest.raises(StreamStateError, match="blend.* differs in its options"):
        second.load_state_dict(state)

    second.load_state_dict(state, across_weights=True)
    after = texts(second, 50)

    assert sources(after)["b"] > 45
    read = [text for text in [*found, *after] if text.startswith("b")]
    assert read == [f"b {number % 10}" for number in range(len(read))]


def test_the_counts_of_the_datasets_go_on_after_a_resumption(folder):
    path = written(folder, BLEND)
    first = metadataset(path, cookers=cook_text).and_return()
    found = texts(first, 60)
    second = metadataset(path, cookers=cook_text).and_return()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    found += texts(second, 40)

    assert {leaf["name"]: leaf["samples"] for leaf in second.leaves} == sources(found)
