import json
from itertools import islice

import orjson
import pytest

from dagster_dataops import (
    CachePool,
    DataPipeline,
    DefaultTaskEncoder,
    FileStore,
    FileStoreCachePool,
    Lazy,
    Sample,
    TextSample,
    basic_sample_keys,
    config,
    cooker,
    crude,
    edataclass,
    get_savable_loader,
    get_train_dataset,
    get_val_dataset,
    read_sequence,
    restore_record,
    stateless,
)
from dagster_dataops.errors import (
    CookerError,
    PipelineDefinitionError,
    StreamArgumentError,
    StreamDefinitionError,
)
from tests.training.cooking.mixtures import cook_text, dataset, store, written


@edataclass
class LazyTextSample(Sample):
    text: str
    secondary_text: Lazy[bytes]


@cooker(need_cache=True)
def cook_lazy(sample: dict, media: FileStore, cache: CachePool) -> LazyTextSample:
    return LazyTextSample(
        **basic_sample_keys(sample),
        text=sample["txt"].decode(),
        secondary_text=cache.get_lazy(media, json.loads(sample["json"])["aux"]),
    )


class Packing(DefaultTaskEncoder[LazyTextSample, LazyTextSample, TextSample, TextSample]):
    cookers = (cook_lazy,)

    def select_samples_to_pack(self, samples: list[LazyTextSample]) -> list[list[LazyTextSample]]:
        return [samples[at : at + 4] for at in range(0, len(samples), 4)]

    @stateless
    def pack_selected_samples(self, samples: list[LazyTextSample]) -> TextSample:
        secondary = samples[0].secondary_text.get(samples[0])
        text = samples[0].text + "|" + secondary.decode()
        return TextSample.derive_from(samples[0], text=text)


class InFours(Packing):
    cookers = (cook_text,)

    def pack_selected_samples(self, samples):
        return TextSample(text="|".join(one["text"] for one in samples))


class Encoding(DefaultTaskEncoder):
    cookers = (cook_text,)

    def encode_sample(self, sample):
        return {**sample, "text": sample["text"].upper()}

    def batch(self, samples):
        return [sample["text"] for sample in samples]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset(tmp_path / "a", 20)
    store(tmp_path / "media", 20)
    return tmp_path


@pytest.fixture
def mix(folder):
    return written(folder, "  train: {path: a, aux: {media: 'filesystem://./media'}}\n")


PACKS = [f"a {number}|file {number}" for number in (0, 4, 8, 10, 14, 18)]


@pytest.mark.parametrize("pooled", [False, True])
def test_packs_are_made_online_with_lazy_files(mix, tmp_path, pooled):
    data = get_train_dataset(mix, task_encoder=Packing(), packing_buffer_size=10)
    pool = FileStoreCachePool(parent_cache_dir=tmp_path / "files") if pooled else None

    loader = get_savable_loader(data, cache_pool=pool)

    packs = list(islice(loader, 8))
    assert [pack["text"] for pack in packs] == [*PACKS, *PACKS[:2]]
    assert [source["file_names"] for source in packs[1]["__sources__"]] == [
        ["0004.json", "0004.txt"],
        ["m4.txt"],
        *([f"{number:04d}.json", f"{number:04d}.txt"] for number in (5, 6, 7)),
    ]


def test_a_loader_goes_on_from_its_state(mix):
    data = get_train_dataset(mix, task_encoder=Packing(), packing_buffer_size=10)
    first = get_savable_loader(data)
    items = iter(first)
    list(islice(items, 4))
    state = json.loads(json.dumps(first.save_state_rank()))
    expected = list(islice(items, 5))
    second = get_savable_loader(data)
    second.restore_state_rank(state)

    assert list(islice(second, 5)) == expected


def test_a_pack_is_made_again_alone(mix):
    data = get_train_dataset(mix, task_encoder=Packing(), packing_buffer_size=10, repeat=False)
    pack = list(data)[3]

    assert pack["__restore_key__"][0] == "pack"
    assert restore_record(data, pack["__restore_key__"]) == pack
    loader = get_savable_loader(data)
    first = next(iter(loader))
    state = loader.state_dict()
    assert loader.restore_sample(pack["__restore_key__"]) == pack
    assert loader.restore_sample(first["__restore_key__"]) == first
    assert loader.state_dict() == state
    other = type(loader)(data.stream())
    with pytest.raises(StreamArgumentError, match="needs a loader of get_savable_loader"):
        other.restore_sample(pack["__restore_key__"])


def test_samples_are_encoded_shuffled_and_batched(folder):
    data = get_train_dataset(
        folder / "a", task_encoder=Encoding(), batch_size=8, shuffle_buffer_size=20, repeat=False
    )
    batches = list(data)

    assert [len(batch) for batch in batches] == [8, 8, 4]
    texts = [text for batch in batches for text in batch]
    assert texts != sorted(texts)
    assert set(texts) == {f"A {number}" for number in range(20)}


def test_evaluation_reads_every_dataset_once_in_order(folder):
    dataset(folder / "b", 3)
    path = written(folder, "  val:\n    blend: [{path: a, weight: 2}, {path: b}]\n")
    data = get_val_dataset(path, task_encoder=Encoding())

    assert [one["text"] for one in data][18:] == ["A 18", "A 19", "B 0", "B 1", "B 2"]
    assert len(list(get_val_dataset(path, task_encoder=Encoding(), limit=5))) == 5
    batches = list(get_val_dataset(path, task_encoder=Encoding(), limit=3, batch_size=2))
    assert [len(batch) for batch in batches] == [2, 2, 2]
    packs = get_val_dataset(path, task_encoder=InFours(), limit=2, packing_buffer_size=8)
    assert [one["text"] for one in packs] == ["a 0|a 1|a 2|a 3", "a 4|a 5|a 6|a 7"]


def test_failed_samples_are_skipped_by_the_loader(folder):
    class Failing(DefaultTaskEncoder):
        cookers = (cook_text,)

        def encode_sample(self, sample):
            return {"n": 1 / int(sample["text"].split()[1])}

    data = get_train_dataset(folder / "a", task_encoder=Failing(), repeat=False)

    assert len(list(get_savable_loader(data))) == 19


def test_the_same_steps_are_a_pipeline(mix, folder, monkeypatch):
    monkeypatch.setattr(config, "data_process_path", folder / "results")
    ppl = Packing().pipeline("train", packing_buffer_size=10, _concurrency_mode="single")
    rows = [dict(row) for row in crude(mix).index()]

    packs = ppl(rows)

    assert list(ppl.graph.nodes) == ["cooked", "packed"]
    assert [pack["text"] for pack in packs] == PACKS
    (cooked,) = (folder / "results").rglob("cooked_results.jsonl")
    first = orjson.loads(cooked.read_bytes().splitlines()[0])
    assert first["secondary_text"] == {"~lazy": [f"filesystem://{folder}/media", "m0.txt"]}


def test_an_encoded_node_comes_before_the_packs(folder):
    class Both(Encoding, Packing):
        pass

    assert list(Both().pipeline("t", packing_buffer_size=2).graph.nodes) == [
        "cooked",
        "encoded",
        "packed",
    ]


def test_mistakes_are_found_before_anything_is_read(mix, folder):
    class Half(DefaultTaskEncoder):
        cookers = (cook_text,)

        def select_samples_to_pack(self, samples):
            return [samples]

    data = folder / "a"
    with pytest.raises(StreamDefinitionError, match="pack_selected_samples"):
        get_train_dataset(data, task_encoder=Half(), packing_buffer_size=2)
    with pytest.raises(StreamDefinitionError, match="needs both methods"):
        get_train_dataset(data, task_encoder=Half())
    with pytest.raises(PipelineDefinitionError, match="pack_selected_samples"):
        Half().pipeline("t", packing_buffer_size=2)
    with pytest.raises(CookerError, match="media"):
        get_train_dataset(mix, task_encoder=Encoding())
    with pytest.raises(CookerError, match="no cooker"):
        get_train_dataset(data)
    with pytest.raises(StreamArgumentError, match="get_train_dataset"):
        get_savable_loader([1, 2])
    blend = written(folder, "  train:\n    blend: [{path: a}]\n", "blend.yaml")
    with pytest.raises(StreamDefinitionError, match="repeat=False"):
        get_train_dataset(blend, task_encoder=Encoding(), repeat=False)


def test_the_stream_of_a_dataset_can_be_combined_and_marked(folder):
    data = get_val_dataset(folder / "a", split_part="train", task_encoder=Encoding())
    alone = list(data.stream())

    assert list(DataPipeline.concat([data.stream(), read_sequence([1])])) == [*alone, 1]
    assert (
        list(data.stream(marked=True).workers(2)) == list(data.stream().sharding_filter()) == alone
    )
    with pytest.raises(StreamDefinitionError, match="sharded twice"):
        data.stream(marked=True).sharding_filter()
