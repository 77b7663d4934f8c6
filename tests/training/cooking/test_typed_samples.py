import pickle

import pytest

from dagster_dataops import (
    CaptioningSample,
    Cooker,
    DefaultTaskEncoder,
    SampleDecoder,
    TextSample,
    basic_sample_keys,
    cook,
    crude,
    get_val_dataset,
    metadataset,
    pipeline,
    restore_record,
)
from dagster_dataops.errors import CookerError, InputError, PathEscapeError
from dagster_dataops.testing import assert_resumes_anywhere
from tests.each import each
from tests.training.cooking.mixtures import cook_text, dataset, store, written
from tests.training.declared import ENERGON, captions

PIL = SampleDecoder(image_decode="pil")
TEXT = f"{ENERGON}TextSample\n"
TEXTS = f"{TEXT}field_map: {{text: txt}}\n"
WITH_LOADER = f"{ENERGON}CaptioningSample\nsample_loader: loader.py:"


def configured(tmp_path, text):
    return captions(tmp_path / "a", config=text)


def test_a_dataset_makes_samples_of_the_type_that_it_declares(tmp_path):
    stream = crude(captions(tmp_path / "a")).cook(decoder=PIL)
    samples = list(stream)

    assert [type(one) for one in samples] == [CaptioningSample] * 5
    assert [one.caption for one in samples] == [f"caption {number}" for number in range(5)]
    assert samples[2].image.getpixel((0, 0)) == (2, 0, 0)
    assert samples[2].__key__ == "002"
    assert samples[2]["__sources__"][0].file_names == ["002.png", "002.txt"]
    assert restore_record(stream, samples[3]["__restore_key__"]).caption == "caption 3"


@pytest.mark.parametrize(
    ("fields", "field", "value"),
    [
        ("{image: png, caption: 'json[caption]'}", "caption", "json 1"),
        ("{image: 'jpg,png', caption: 'json[boxes][1][0]'}", "caption", 1),
        ("{image: cls, caption: 'nope,json[nope],txt'}", "caption", "caption 1"),
        ("{image: cls, caption: 'json[boxes]'}", "caption", [[1, 2], [1, 4]]),
    ],
)
def test_a_field_map_leads_to_values_within_parts(tmp_path, fields, field, value):
    folder = configured(tmp_path, f"{ENERGON}CaptioningSample\nfield_map: {fields}\n")
    samples = list(crude(folder).cook(decoder=PIL))

    assert samples[1][field] == value


def test_the_old_names_of_datasets_name_the_samples_too(tmp_path):
    text = (
        "__module__: megatron.energon\n__class__: ImageClassificationWebdataset\n"
        "subflavors: {a: 1}\nfield_map: {image: txt, label: cls}\n"
    )
    sample = list(crude(configured(tmp_path, text)).cook())[3]

    assert (type(sample).__name__, sample.label, sample.label_name) == (
        "ImageClassificationSample",
        3,
        None,
    )
    assert sample.__subflavors__ == {"a": 1}


@pytest.mark.slow
@each("parts", ["loader.py:part_filter", "loader.py", "[png, json]"])
def test_a_sample_loader_makes_the_fields(tmp_path, parts):
    folder = configured(tmp_path, f"{WITH_LOADER}sample_loader\npart_filter: {parts}\n")
    stream = crude(folder).cook(decoder=PIL)

    assert [one.caption for one in stream.workers(2)] == [f"json {n}00{n}" for n in range(5)]
    assert_resumes_anywhere(lambda: crude(folder).cook(decoder=PIL).map(lambda one: one.caption))


def test_a_sample_loader_can_give_another_key(tmp_path):
    folder = configured(tmp_path, f"{WITH_LOADER}renamed\n")
    stream = crude(folder).cook(decoder=PIL)
    sample = list(stream)[1]

    assert (sample.__key__, sample["__restore_key__"][2]) == ("<001>", "001")
    assert restore_record(stream, sample["__restore_key__"]) == sample


def test_the_decoder_of_the_task_encoder_makes_the_values(tmp_path):
    class Raw(DefaultTaskEncoder):
        decoder = None

    class Sized(DefaultTaskEncoder):
        decoder = PIL

        def encode_sample(self, sample):
            return TextSample.derive_from(sample, text=str(sample.image.size))

    folder = captions(tmp_path / "a")

    raw = get_val_dataset(folder, split_part="train", task_encoder=Raw())
    sized = get_val_dataset(folder, split_part="train", task_encoder=Sized())
    assert next(iter(raw)).caption == b"caption 0"
    assert next(iter(sized)).text == "(6, 4)"


def test_datasets_with_and_without_a_type_are_mixed(tmp_path):
    captions(tmp_path / "a", config=TEXTS)
    dataset(tmp_path / "b", 3)
    path = written(
        tmp_path,
        "  train:\n    concat:\n      - {path: a, subflavors: {k: 1}}\n      - {path: b}\n",
    )

    def cook_shouted(sample):
        return TextSample(**basic_sample_keys(sample), text=sample["txt"].decode().upper())

    mix = metadataset(path, cookers=[cook_shouted])
    texts = [one.text for one in mix]

    assert texts == [*(f"caption {number}" for number in range(5)), "B 0", "B 1", "B 2"]
    assert [leaf.cooker for leaf in mix.leaves] == ["TextSample", "cook_shouted"]
    assert [leaf.sample_type for leaf in mix.leaves] == ["TextSample", None]
    with pytest.raises(CookerError, match="there is no cooker"):
        metadataset(path).cook()


def test_typed_samples_are_cooked_as_assets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = captions(tmp_path / "a", config=TEXTS)
    with pipeline("typed") as ppl:
        ppl.cooked = cook(_max_workers=2, _concurrency_mode="process")

    records = ppl(crude(folder))

    assert [one["text"] for one in records] == [f"caption {number}" for number in range(5)]
    with pipeline("wrong") as ppl:
        ppl.cooked = cook()
    with pytest.raises(CookerError, match="there is no cooker"):
        ppl(crude(dataset(tmp_path / "b", 2)))


JOINED = f"""
  train:
    join: [{{path: a}}, {{path: b}}]
    joiner: {{__module__: {__name__}, __function__: joined}}
"""


def test_typed_samples_are_joined(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    captions(tmp_path / "a", config=TEXTS)
    captions(tmp_path / "b", 5, f"{ENERGON}ImageSample\nfield_map: {{image: cls}}\n")
    path = written(tmp_path, JOINED)
    stream = metadataset(path).cook()
    samples = list(stream)

    assert [one["text"] for one in samples] == [f"caption {n} {n}" for n in range(5)]
    assert restore_record(stream, samples[2]["__restore_key__"])["text"] == "caption 2 2"
    with pipeline("joined") as ppl:
        ppl.cooked = cook()
    assert [one["text"] for one in ppl(metadataset(path))] == [one["text"] for one in samples]


def joined(text, image):
    return TextSample.derive_from(text, text=f"{text.text} {image.image}")


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (
            f"{ENERGON}CaptionSample\nfield_map: {{a: txt}}\n",
            CookerError,
            "did you mean 'Captioning",
        ),
        (f"{TEXT}field_map: {{txt: txt}}\n", CookerError, "'txt', which is none"),
        (f"{ENERGON}CaptioningSample\nfield_map: {{image: png}}\n", CookerError, "lacks 'caption'"),
        (TEXT, InputError, "has no field_map"),
        (f"{TEXTS}sample_loader: a\n", InputError, "either"),
        (f"{TEXT}field_map: [txt]\n", InputError, "must be a mapping"),
        (f"{TEXT}field_map: {{text: null}}\n", InputError, "names of parts"),
        (f"{TEXT}field_map: {{text: [txt]}}\n", InputError, "names of parts"),
        (f"{WITH_LOADER}renamed\npart_filter: {{txt: 1}}\n", InputError, "list of names of parts"),
        (f"{WITH_LOADER}renamed\npart_filter: [null]\n", InputError, "list of names of parts"),
        ("part_filter: {txt: 1}\n", InputError, "list of names of parts"),
        ("part_filter: 5\n", InputError, "list of names of parts"),
        ("subflavors: [a]\n", InputError, "subflavors must be a mapping"),
        (f"{TEXT}field_map: {{text: 'a[b'}}\n", InputError, "is no place"),
        (f"{TEXTS}part_filter: [a]\n", InputError, "belongs"),
        (f"{WITH_LOADER}nope\n", CookerError, "has no function 'nope'"),
        (f"{TEXT}sample_loader: nope.py\n", CookerError, "cannot be loaded"),
        (f"{TEXT}sample_loader: ../x.py:f\n", PathEscapeError, "x.py"),
        (f"{TEXT}sample_loader: 5\n", InputError, "must be the name"),
        ("sample_type: TextSample\nfield_map: {text: txt}\n", InputError, "needs __module__"),
        ("__class__: OCRSample\n", InputError, "declare sample_type"),
        (
            "sample_type: {__module__: nope, __class__: A}\nfield_map: {a: b}\n",
            CookerError,
            "imported",
        ),
    ],
)
def test_a_wrong_declaration_is_found_before_anything_is_read(tmp_path, config, error, message):
    folder = configured(tmp_path, config)
    with pytest.raises(error, match=message):
        crude(folder).cook(decoder=PIL)


def test_a_store_belongs_to_crude_datasets(tmp_path):
    captions(tmp_path / "a", config=TEXTS)
    store(tmp_path / "media", 2)
    stream = crude(tmp_path / "a", aux={"media": f"filesystem://{tmp_path}/media"})
    with pytest.raises(CookerError, match="no cooker takes the auxiliary store 'media'"):
        stream.cook([Cooker(cook_text)])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (f"{TEXT}field_map: {{text: nope}}\n", "has no nope; its parts"),
        (f"{WITH_LOADER}wrong\n", "returned a list"),
        (f"{WITH_LOADER}renamed\npart_filter: [json]\n", "txt"),
    ],
)
def test_a_sample_that_cannot_be_made_is_its_own_error(tmp_path, config, message):
    stream = crude(configured(tmp_path, config)).cook(decoder=PIL).and_return(on_error="quarantine")
    assert list(stream) == []
    assert len(stream.quarantined) == 5
    assert all(message in one["message"] for one in stream.quarantined)


def test_a_changed_loader_is_another_stream(tmp_path):
    folder = configured(tmp_path, f"{WITH_LOADER}renamed\n")
    stream = crude(folder).cook(decoder=PIL).and_return()
    next(iter(stream))
    state = stream.state_dict()
    path = folder / ".nv-meta" / "loader.py"
    path.write_text(path.read_text().replace('"<"', '"<<"'))

    with pytest.raises(Exception, match="cook"):
        crude(folder).cook(decoder=PIL).and_return().load_state_dict(state)


def test_a_stream_of_typed_samples_can_be_sent(tmp_path):
    stream = crude(configured(tmp_path, f"{WITH_LOADER}renamed\n")).cook(decoder=PIL)
    assert list(pickle.loads(pickle.dumps(stream.and_return()))) == list(stream)
