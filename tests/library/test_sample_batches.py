from typing import Any, NamedTuple

import numpy as np
import pytest

from dagster_dataops import (
    Batch,
    DefaultTaskEncoder,
    Sample,
    TextSample,
    batch_list,
    batch_pad_stack,
    batch_stack,
    edataclass,
    generic_batch,
    get_val_dataset,
    restore_record,
)
from tests.training.cooking.mixtures import cook_text, dataset


class Pair(NamedTuple):
    a: Any
    b: Any


@edataclass
class NumberSample(Sample):
    pixels: np.ndarray
    text: str


@edataclass
class NumberBatch(Batch):
    pixels: np.ndarray
    text: list[str]


def sample(key, *values):
    return NumberSample(
        __key__=key,
        __restore_key__=["place", "shard", key],
        __subflavors__={"k": key},
        __sources__=[key],
        pixels=np.array(values),
        text=f"text {key}",
    )


def test_a_batch_has_the_fields_and_the_keys_of_its_samples():
    batch = NumberBatch.from_samples([sample("a", 1), sample("b", 2, 3)])

    assert batch.pixels.tolist() == [[1, 0], [2, 3]]
    assert batch.text == ["text a", "text b"]
    assert batch["__key__"] == ["a", "b"]
    assert batch["__restore_key__"] == [["place", "shard", "a"], ["place", "shard", "b"]]
    assert batch["__subflavors__"] == [{"k": "a"}, {"k": "b"}]
    assert batch["__sources__"] == ["a", "b"]
    assert NumberBatch.derive_from(batch, pixels=1, text=2)["__key__"] == ["a", "b"]


def test_fields_of_a_batch_can_be_given_and_missing_ones_are_refused():
    made = NumberBatch.from_samples([{"pixels": np.ones(2)}], text=["x"])
    assert made.text == ["x"]
    with pytest.raises(TypeError, match="the sample 'b' has no 'text'"):
        NumberBatch.from_samples([{"text": "a"}, {"__key__": "b"}], pixels=1)


def test_values_are_batched_by_their_type():
    assert generic_batch([{"n": 1, "d": {"x": "a"}}, {"n": 2, "d": {"x": "b"}}]) == {
        "n": [1, 2],
        "d": {"x": ["a", "b"]},
    }
    assert generic_batch([Pair(1, "a"), Pair(2, "b")]) == Pair([1, 2], ["a", "b"])
    batch = generic_batch([sample("a", 1, 2), sample("b", 3, 4)])
    assert type(batch) is NumberSample
    assert batch.pixels.tolist() == [[1, 2], [3, 4]]
    assert batch["__key__"] == ["a", "b"]


def test_arrays_are_stacked_and_padded():
    ones, more = np.ones((2, 1), "float32"), np.full((1, 3), 2, "float32")
    padded = batch_pad_stack([ones, more])
    assert padded.tolist() == [[[1, 0, 0], [1, 0, 0]], [[2, 2, 2], [0, 0, 0]]]
    assert padded.dtype == np.float32
    assert batch_stack([ones, ones]).shape == (2, 2, 1)
    assert batch_list((1, 2)) == [1, 2]
    with pytest.raises(ValueError, match="other numbers of dimensions"):
        batch_pad_stack([ones, np.ones(2)])


def test_tensors_are_stacked_and_padded():
    torch = pytest.importorskip("torch")
    padded = batch_pad_stack([torch.ones(2), torch.ones(1)])
    assert padded.tolist() == [[1, 1], [1, 0]]


@edataclass
class TextBatch(Batch):
    text: list[str]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return dataset(tmp_path / "a", 10)


class Texts(DefaultTaskEncoder):
    cookers = (cook_text,)


def val(folder, **options):
    made = Texts(**options)
    return get_val_dataset(folder, split_part="train", task_encoder=made, batch_size=4)


def test_a_task_encoder_makes_batches_of_a_class_which_are_made_again_by_their_key(folder):
    data = val(folder, raw_batch_type=TextBatch)
    batches = list(data)

    assert [batch.text for batch in batches][2] == ["a 8", "a 9"]
    assert restore_record(data, batches[1]["__restore_key__"]) == batches[1]
    one = restore_record(data, batches[1]["__restore_key__"][0])
    assert one == TextSample.derive_from(one, text="a 4")


def test_a_task_encoder_converts_samples_and_batches(folder):
    assert next(iter(val(folder, raw_batch_type=dict)))["text"] == [f"a {n}" for n in range(4)]
    batch = next(iter(val(folder, raw_batch_type=dict, batch_type=TextBatch)))
    assert type(batch) is TextBatch
    encoded = next(iter(val(folder, encoded_sample_type=dict)))
    assert type(encoded[0]) is dict
    assert [type(one) for one in next(iter(val(folder)))] == [TextSample] * 4
