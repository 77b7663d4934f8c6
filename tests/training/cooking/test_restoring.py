"""Records, packs and batches that are made again by their keys."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest

from dagster_dataops import (
    Cooker,
    CrudeSample,
    DataPipeline,
    DefaultTaskEncoder,
    TextSample,
    basic_sample_keys,
    cook,
    crude,
    get_savable_loader,
    get_train_dataset,
    metadataset,
    read_sequence,
    restore_record,
    stateless,
)
from dagster_dataops.errors import UnknownSampleError
from tests.each import each
from tests.training.cooking.mixtures import cook_text, dataset, written

KEY = "__restore_key__"


def labelled(label):
    def cook(sample):
        return TextSample(**basic_sample_keys(sample), text=f"{label} {sample['txt'].decode()}")

    return Cooker(cook, has_subflavors={"kind": label})


COOKERS = [labelled("long"), labelled("short")]
TWICE = """  train:
    blend_epochized:
      - {path: a, repetitions: 1, subflavors: {kind: long}}
      - {path: a, repetitions: 1, subflavors: {kind: short}}
"""


class Packing(DefaultTaskEncoder):
    cookers = (cook_text,)

    def select_samples_to_pack(self, samples):
        return [samples[:1], samples[1:4], samples[4:]]

    def pack_selected_samples(self, samples):
        return TextSample(text="|".join(one["text"] for one in samples))

    def batch(self, samples):
        return {KEY: [one[KEY] for one in samples], "texts": [one["text"] for one in samples]}

    def encode_batch(self, batch):
        return {**batch, "size": len(batch["texts"])}


class Batching(DefaultTaskEncoder):
    cookers = (cook_text,)

    def batch(self, samples):
        return {"items": list(samples), "n": len(samples)}


@pytest.fixture
def folder(tmp_path):
    return dataset(tmp_path / "a", 12)


def test_a_record_of_a_dataset_with_batches_is_the_record(folder):
    for size in (None, 2):
        data = get_train_dataset(folder, task_encoder=Batching(), batch_size=size, repeat=False)
        for item in data:
            for record in [item] if size is None else item["items"]:
                assert restore_record(data, json.loads(json.dumps(record[KEY]))) == record


def test_a_batch_is_made_again_by_the_keys_of_its_items(folder):
    data = get_train_dataset(
        folder, task_encoder=Packing(), packing_buffer_size=6, batch_size=2, repeat=False
    )
    batches = list(islice(get_savable_loader(data), 3))

    assert len(batches) == 3
    for batch in batches:
        keys = json.loads(json.dumps(batch[KEY]))
        assert restore_record(data, keys) == batch
        packs = [restore_record(data, key) for key in keys]
        assert [pack["text"] for pack in packs] == batch["texts"]


def batches_of(folder, kind):
    stream = crude(folder).cook(cook_text)
    if kind == "bucket":
        return stream.bucket(4)
    if kind == "by_length":
        return stream.bucket_by_length([(4, 100)], selector="text")
    return stream.dynamic_bucket(4, lambda _: 1)


@each("kind", ["bucket", "by_length", "dynamic"])
def test_functions_of_batches_get_a_list(folder, kind):
    plain = batches_of(folder, kind)
    counted = plain.map(lambda batch: {"n": len(batch)})
    for batch in plain:
        keys = [record[KEY] for record in batch]
        assert restore_record(plain, keys) == batch
        assert restore_record(counted, keys) == {"n": len(batch)}
        assert restore_record(plain, keys[0]) == batch[0]
        assert restore_record(counted, keys[0]) == {"n": 1}
    with pytest.raises(UnknownSampleError, match="leaves the sample out"):
        restore_record(plain.filter(lambda batch: len(batch) > 1), keys[0])
    assert restore_record(plain.filter(lambda batch: len(batch) == 1), keys[0]) == batch[0]


def test_the_key_names_the_entry_of_a_dataset_that_is_named_twice(folder):
    stream = metadataset(written(folder.parent, TWICE), cookers=COOKERS, seed=1)
    records = list(stream)

    assert len(records) == 24
    for record in records:
        again = restore_record(stream, json.loads(json.dumps(record[KEY])))
        assert again == record
    assert records[0][KEY][3] in {'{"kind":"long"}', '{"kind":"short"}'}


def test_an_operator_makes_the_same_keys_of_a_dataset_that_is_named_twice(folder):
    path = written(folder.parent, TWICE)
    stream = metadataset(path, cookers=COOKERS, seed=1)
    made = cook(COOKERS)(list(metadataset(path, seed=1).index()))

    assert [record[KEY] for record in made] == [record[KEY] for record in stream]
    for record in made:
        assert restore_record(metadataset(path, seed=1), record[KEY], COOKERS) == record


def test_a_pack_of_a_dataset_that_is_named_twice_is_the_pack(folder):
    class Mixed(Packing):
        cookers = tuple(COOKERS)

    path = written(folder.parent, TWICE)
    data = get_train_dataset(
        path, task_encoder=Mixed(), packing_buffer_size=6, repeat=False, seed=1
    )
    for pack in data:
        assert restore_record(data, pack[KEY]) == pack


def test_a_key_without_an_entry_is_accepted_if_all_entries_make_the_same_record(folder):
    path = written(folder.parent, TWICE)
    stream = metadataset(path, cookers=COOKERS, seed=1)
    key = next(iter(stream))[KEY][:3]
    with pytest.raises(UnknownSampleError, match="fits 2 datasets of the stream"):
        restore_record(stream, key)

    same = TWICE.replace("short", "long")
    alike = metadataset(written(folder.parent, same, "same.yaml"), cookers=COOKERS, seed=1)
    record = next(iter(alike))
    assert len(record[KEY]) == 3
    assert restore_record(alike, record[KEY]) == record


def test_the_entry_of_another_metadataset_is_refused(folder):
    stream = metadataset(written(folder.parent, TWICE), cookers=COOKERS, seed=1)
    *key, _ = next(iter(stream))[KEY]
    with pytest.raises(UnknownSampleError, match="no entry other"):
        restore_record(stream, [*key, "other"])
    with pytest.raises(UnknownSampleError, match="no entry other"):
        restore_record(crude(folder), [*key, "other"])


def test_a_key_that_fits_two_streams_is_refused_unless_they_make_the_same(folder):
    first = crude(folder).cook(cook_text)
    other = first.map(lambda record: {**record, "other": True})
    key = next(iter(first))[KEY]

    same = DataPipeline.concat(first, crude(folder).cook(cook_text))
    assert restore_record(same, key) == next(iter(first))
    left_out = DataPipeline.concat(first.filter(lambda _: False), other)
    assert restore_record(left_out, key) == next(iter(other))
    with pytest.raises(UnknownSampleError, match="fits 2 datasets"):
        restore_record(DataPipeline.concat(first, other), key)


def test_records_that_depend_on_more_than_a_sample_are_refused(folder):
    stream = crude(folder).cook(cook_text)
    key = next(iter(stream))[KEY]
    rows = DataPipeline.zip([stream, DataPipeline.count()])
    assert restore_record(rows, key) == next(iter(stream))

    cases = [
        rows.map(lambda row: row[0]),
        stream.map(lambda record, random: {**record, "r": random.random()}, random=True),
        stream.yield_from(lambda record: read_sequence([record, record]).and_return()),
        stream.pack_windows(2, lambda window: [window], lambda group: {"n": len(group)}).map(dict),
        crude(folder).cook(lambda sample: [cook_text(sample), cook_text(sample)]),
    ]
    for case in cases:
        with pytest.raises(UnknownSampleError, match="several samples|depend on more|2 records"):
            restore_record(case, key)


def test_concurrent_functions_are_applied(folder):
    async def shout(record):
        return {**record, "text": record["text"].upper()}

    stream = crude(folder).cook(cook_text).map(shout, num_parallel_calls=4)
    record = next(iter(stream))

    assert record["text"] == "A 0"
    assert restore_record(stream, record[KEY]) == record


def test_a_key_with_an_entry_fits_the_same_dataset_alone(folder):
    stream = metadataset(written(folder.parent, TWICE), cookers=COOKERS, seed=1)
    record = next(iter(stream))
    alone = crude(folder, subflavors=record["__subflavors__"]).cook(COOKERS)
    again = restore_record(alone, record[KEY])
    assert again == {**record, KEY: record[KEY][:3]}


def test_joins_of_the_same_datasets_by_other_joiners_are_entries(folder):
    dataset(folder.parent / "b", 12)
    module = "tests.training.cooking.test_restoring"
    joined = f"join: [{{path: a}}, {{path: b}}], joiner: {{__module__: {module}"
    entries = "".join(
        f"      - {{{joined}, __function__: {name}}}}}\n" for name in ("left", "right")
    )
    path = written(folder.parent, f"  train:\n    concat:\n{entries}")
    assert isinstance(next(iter(metadataset(path))), CrudeSample)
    stream = metadataset(path, cookers=cook_text)
    records = list(stream)
    assert [records[0]["text"], records[-1]["text"]] == ["a 0", "b 11"]
    assert [restore_record(stream, record[KEY]) for record in records] == records


def left(first, second):
    return CrudeSample(first)


def right(first, second):
    return dict(second)


def test_a_collated_batch_is_made_again_by_its_keys(folder):
    stream = crude(folder).cook(cook_text).bucket(5).collate()
    for batch in stream:
        assert restore_record(stream, json.loads(json.dumps(batch[KEY]))) == batch


class Augmenting(DefaultTaskEncoder):
    cookers = (cook_text,)

    @stateless(restore_seeds=True)
    def encode_sample(self, sample):
        return {**sample, "r": random.random(), "n": float(np.random.rand())}


@stateless(restore_seeds=True)
def draws(records):
    for _ in records:
        yield random.random()


@pytest.fixture
def data(tmp_path):
    folder = dataset(tmp_path / "a", 6)
    return get_train_dataset(folder, task_encoder=Augmenting(), repeat=False)


def test_a_record_gets_the_same_random_numbers_each_time(data):
    records = list(data)

    assert len({record["r"] for record in records}) == 6
    assert len({record["n"] for record in records}) == 6
    assert list(data) == records
    assert list(get_savable_loader(data, num_workers=1)) == records
    assert [restore_record(data, one["__restore_key__"]) for one in records] == records


def test_the_random_numbers_outside_are_not_changed(data):
    random.seed(5)
    np.random.seed(5)
    wanted = random.random(), np.random.rand()

    random.seed(5)
    np.random.seed(5)
    list(data)
    assert (random.random(), np.random.rand()) == wanted


def test_an_error_sets_the_states_back():
    @stateless(restore_seeds=True)
    def fails(record):
        raise ValueError(record)

    state = random.getstate()
    with pytest.raises(ValueError, match="x"):
        fails({"x": 1})
    assert random.getstate() == state


def test_a_generator_and_a_list_of_records_are_seeded():
    records = [{"__restore_key__": ["d", "s", str(n)]} for n in range(2)]

    assert list(draws(records)) == list(draws(records))
    assert list(draws(records)) != list(draws(records[::-1]))


def test_records_without_keys_are_told_apart_by_their_values():
    draw = stateless(restore_seeds=True)(lambda record: random.random())

    assert draw({"a": 1}) == draw({"a": 1}) != draw({"a": 2})
    assert draw({"a": np.zeros(2)}) == draw({"a": np.zeros(2)}) != draw({"a": np.ones(2)})


def test_threads_do_not_disturb_one_another():
    draw = stateless(restore_seeds=True)(lambda record: [random.random() for _ in range(200)])
    records = [{"__restore_key__": [str(n)]} for n in range(40)]
    wanted = [draw(record) for record in records]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, records)) == wanted


def test_a_coroutine_function_is_refused():
    async def encode(record):
        return record

    with pytest.raises(TypeError, match="no coroutine function"):
        stateless(restore_seeds=True)(encode)
    assert stateless(encode) is encode
