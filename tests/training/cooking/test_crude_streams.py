"""Tests of dagster_dataops.training.cooking: crude streams, cookers, and the stage that cooks."""

import bz2
import gzip
import json
import lzma

import pytest
import zstandard

from dagster_dataops import (
    Cooker,
    DataPipeline,
    SkipSample,
    TextSample,
    basic_sample_keys,
    cooker,
    crude,
    read_tar,
    restore_record,
)
from dagster_dataops.errors import (
    AuxFileMissingError,
    CookerError,
    InputError,
    StreamArgumentError,
    StreamDefinitionError,
    StreamStateError,
    UnknownSampleError,
)
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.training.cooking.crude_lines import NumberedSamples
from dagster_dataops.training.cooking.crude_tars import TarSamples
from tests.training.filestores.shards import dataset, stores


def cook_text(sample: dict) -> TextSample:
    return TextSample(**basic_sample_keys(sample), text=f">{sample['txt'].decode()}<")


def cook_a(sample):
    return TextSample(**basic_sample_keys(sample), text="A")


def name_of(sample):
    return json.loads(sample["json"])["aux"]


def cook_aux(sample, foo, fs):
    texts = [sample["txt"], foo.get(name_of(sample), sample), fs.get(name_of(sample), sample)]
    return TextSample(**basic_sample_keys(sample), text=b" + ".join(texts).decode())


@pytest.fixture
def folder(tmp_path):
    stores(tmp_path)
    return dataset(tmp_path / "a")


@pytest.fixture
def with_aux(folder, tmp_path):
    aux = {"foo": tmp_path / "aux", "fs": f"filesystem://{tmp_path}/imgs"}
    return crude(folder, aux=aux)


def texts(stream):
    return [one["text"] for one in stream]


def test_a_crude_sample_has_bytes_and_says_where_it_is_from(folder):
    sample = next(iter(crude(folder)))
    assert sample == {
        "__key__": "a00000",
        "__restore_key__": [str(folder), "shards/data-000.tar", "a00000"],
        "__shard__": "shards/data-000.tar",
        "__sources__": [
            {
                "dataset_path": str(folder),
                "index": 0,
                "shard_name": "shards/data-000.tar",
                "file_names": ["a00000.json", "a00000.txt"],
            }
        ],
        "__subflavors__": {"number": 42},
        "json": b'{"n": 0, "aux": "m0000.txt"}',
        "txt": b"caption 0",
    }


def test_every_way_to_read_a_dataset_gives_the_same_samples(folder):
    found = list(crude(folder))
    assert [one["__sources__"][0].index for one in found] == list(range(20))
    shuffled = sorted(crude(folder).shuffle(0), key=lambda one: one["__key__"])
    assert shuffled == found
    by_files = [(one["__key__"], one["txt"]) for one in read_tar(folder / "shards")]
    assert by_files == [(one["__key__"], one["txt"]) for one in found]
    pattern = crude(folder / "shards" / "*.tar", subflavors={"number": 42})
    assert [one["txt"] for one in pattern] == [one["txt"] for one in found]


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        *((".tar.gz", gzip.compress), (".tgz", gzip.compress), (".tar.bz2", bz2.compress)),
        *((".tar.xz", lzma.compress), (".tzst", zstandard.compress)),
    ],
)
def test_compressed_shards_are_shards(folder, tmp_path, suffix, pack):
    (tmp_path / "packed").mkdir()
    for shard in (folder / "shards").iterdir():
        (tmp_path / "packed" / f"{shard.stem}{suffix}").write_bytes(pack(shard.read_bytes()))
    expected = [(one["__key__"], one["txt"]) for one in crude(folder)]

    def found(stream):
        return [(one["__key__"], one["txt"]) for one in stream]

    packed = crude(tmp_path / "packed")
    assert found(packed) == found(crude(tmp_path / "packed" / "*")) == expected
    assert found(crude(tmp_path / "packed" / f"data-000{suffix}")) == expected[:7]
    assert sorted(found(packed.shuffle(0))) == expected
    last = list(packed)[-1]
    assert restore_record(packed.and_return(), last["__restore_key__"]) == last
    assert_resumes_anywhere(lambda: packed)


def test_headers_and_scans_give_the_same_samples(folder, monkeypatch):
    by_scan, order = list(crude(folder)), list(crude(folder).shuffle(0, seed=1))
    monkeypatch.setattr(TarSamples, "is_placed", lambda *_: False)
    assert list(crude(folder)) == by_scan
    assert list(crude(folder).shuffle(0, seed=1)) == order
    assert_resumes_anywhere(lambda: crude(folder, block_size=2048))


def test_a_dataset_by_url_is_read(folder):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/crude", recursive=True)
    found = [one["txt"] for one in crude("memory://crude")]
    assert found == [one["txt"] for one in crude(folder)]
    assert_resumes_anywhere(lambda: crude("memory://crude"), limit=8)
    memory.rm("/crude", recursive=True)


STREAMS = {
    "crude": crude,
    "tar files": lambda path: read_tar(path / "shards"),
    "shuffled": lambda path: crude(path).shuffle(0, seed=3),
    "cooked": lambda path: crude(path).cook(cook_text),
    "several records": lambda path: crude(path).cook(
        lambda sample: [
            {"k": sample["__key__"], "n": n} for n in range(int(sample["txt"][-1:]) % 4)
        ]
    ),
    "several records, shuffled": lambda path: (
        crude(path).shuffle(0, seed=1).cook(lambda one: [{"k": one["__key__"]}] * 3)
    ),
    "index": lambda path: crude(path).index(),
    "jsonl": lambda path: crude(path.parent / "lines.jsonl"),
    "folder": lambda path: crude(path.parent / "imgs"),
    "mixed": lambda path: DataPipeline.concat(
        crude(path).cook(cook_a), crude(path).cook(cook_text)
    ),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_resumes_anywhere(folder, tmp_path, kind):
    (tmp_path / "lines.jsonl").write_text("".join(f'{{"n":{n}}}\n' for n in range(10)))
    assert_resumes_anywhere(lambda: STREAMS[kind](folder), limit=25)


def test_lines_and_files_are_samples_too(tmp_path):
    stores(tmp_path)
    (tmp_path / "lines.jsonl").write_text('{"n":0}\n\n{"n":1}')
    found = list(crude(tmp_path / "lines.jsonl", subflavors={"x": 1}))
    assert [(one["__key__"], one["json"]) for one in found] == [
        ("0", b'{"n":0}'),
        ("1", b'{"n":1}'),
    ]
    assert found[1]["__subflavors__"] == {"x": 1}
    files = list(crude(tmp_path / "imgs"))
    assert [one["__key__"] for one in files][-2:] == ["m0019", "sub/x"]
    assert files[0]["txt"] == b"file 0"


def test_subflavors_are_copies(folder):
    first, second, *_ = crude(folder, subflavors={"deep": {"x": 1}})
    first["__subflavors__"]["deep"]["x"] = 2
    assert second["__subflavors__"] == {"number": 42, "deep": {"x": 1}}


def test_the_first_cooker_that_fits_is_used(folder):
    fits, other = {"number": 42}, {"number": "42"}
    for lists, expected in [
        ([Cooker(cook_a, fits), Cooker(cook_text)], "A"),
        ([Cooker(cook_text), Cooker(cook_a, fits)], ">caption 0<"),
        ([Cooker(cook_a, other), cook_text], ">caption 0<"),
        ([Cooker(cook_a, {"more": None}), cook_text], ">caption 0<"),
        (cook_a, "A"),
    ]:
        assert next(iter(crude(folder).cook(lists))).text == expected


def test_a_dataset_without_a_cooker_is_refused_when_the_stream_is_built(folder):
    with pytest.raises(
        CookerError,
        match=r"no cooker takes .*/a: it has number=42; the cookers want cook_a: number=1",
    ):
        crude(folder).cook([Cooker(cook_a, {"number": 1})])
    with pytest.raises(CookerError, match="there is no cooker"):
        crude(folder).cook([])
    with pytest.raises(CookerError, match="not a str"):
        crude(folder).cook(["cook_a"])
    with pytest.raises(CookerError, match="needs a crude source"):
        crude(folder).cook(cook_a).cook(cook_a)


def test_a_cooker_gets_files_by_name_and_records_them(with_aux):
    found = list(with_aux.cook(cook_aux))
    assert found[19].text == "caption 19 + aux 19 + file 19"
    names = [(one.dataset_path.rpartition("/")[2], one.index) for one in found[3]["__sources__"]]
    assert names == [("a", 3), ("aux", "m0003.txt"), ("imgs", "m0003.txt")]


def test_a_cooker_gets_its_own_dataset(with_aux):
    @cooker(need_primary=True)
    def cook_primary(sample, primary, **stores):
        assert ".txt" in primary
        own = primary.get(".txt", sample)
        return {**basic_sample_keys(sample), "text": own + b"|" + primary.get("a00007.txt")}

    found = list(with_aux.cook(cook_primary))
    assert [one["text"] for one in found[:2]] == [b"caption 0|caption 7", b"caption 1|caption 7"]


def test_a_cooker_gets_the_cache_pool(folder):
    @cooker(need_cache=True)
    def cook_cached(sample, cache):
        return {"text": cache}

    assert texts(crude(folder).cook(cook_cached, cache_pool="pool"))[0] == "pool"


def test_stores_and_parameters_that_do_not_fit_are_refused(with_aux, folder):
    def missing(sample, foo, fs, third): ...
    def misspelt(sample, foo, fss): ...
    def primary(sample, foo, fs, primary): ...

    for function, message in [
        (missing, "'third', and .* has no such store. Its stores: foo, fs"),
        (misspelt, "'fss', and .* did you mean 'fs'"),
        (primary, "@cooker\\(need_primary=True\\)"),
        (cook_text, "no parameter 'foo', which .*/a gives it"),
    ]:
        with pytest.raises(CookerError, match=message):
            with_aux.cook(function)
    with pytest.raises(CookerError, match="takes the sample as 'sample', and .* rename one"):
        crude(folder, aux={"sample": folder}).cook(lambda sample, **stores: {})
    with pytest.raises(CookerError, match="can be called 'primary'"):
        crude(folder, aux={"primary": folder}).cook(cook_text)
    with pytest.raises(CookerError, match=r"auxiliary store .*nowhere.* no such"):
        crude(folder, aux={"foo": "nowhere"}).cook(lambda sample, foo: {})


def test_errors_are_those_of_their_samples(with_aux):
    def cook(sample, foo, fs):
        if sample["__key__"] == "a00004":
            raise SkipSample
        return {"text": foo.get("m9999.txt" if sample["__key__"] == "a00002" else "m0001.txt")}

    stream = with_aux.cook(cook).and_return(on_error="quarantine")
    assert len(list(stream)) == 18
    (failed,) = stream.quarantined
    assert failed["exception"] == AuxFileMissingError.__name__
    assert failed["item"]["__key__"] == "a00002"
    assert "no file 'm9999.txt' among 20; nearest" in failed["message"]


@pytest.mark.parametrize("returned", [None, "text", (one for one in []), [1]])
def test_a_cooker_must_return_records(folder, returned):
    with pytest.raises(TypeError, match=r"cooker <lambda> returned a .* sample 'a00000'"):
        list(crude(folder).cook(lambda sample: returned))


def test_a_state_of_other_cookers_or_data_is_refused(folder):
    stream = crude(folder).cook(cook_text).and_return()
    next(iter(stream))
    for other in (crude(folder).cook(cook_a), crude(folder, subflavors={"x": 1}).cook(cook_text)):
        with pytest.raises(StreamStateError):
            other.and_return().load_state_dict(stream.state_dict())


def test_one_record_is_made_again_alone(with_aux):
    stream = with_aux.shuffle(0, seed=4).cook(cook_aux).map(lambda one: {**one, "m": 1})
    for record in stream.take(3):
        key = json.loads(json.dumps(record["__restore_key__"]))
        assert restore_record(stream, key) == record
    sample = restore_record(with_aux, key)
    assert sample["txt"] == record["text"].split(" + ")[0].encode()
    assert restore_record(with_aux, key, cookers=cook_aux).text == record["text"]


def test_a_record_is_found_by_its_names_even_if_shards_change_places(folder):
    *_, record = crude(folder).cook(cook_text)
    split = "split_parts: {train: [shards/data-002.tar, shards/data-000.tar]}"
    (folder / ".nv-meta" / "split.yaml").write_text(split)
    assert (
        restore_record(crude(folder).cook(cook_text), record["__restore_key__"]).text == record.text
    )


def test_an_unknown_key_is_refused(folder):
    stream = crude(folder)
    for key, message in [
        ([str(folder), "shards/data-000.tar", "nowhere"], "no sample 'nowhere'"),
        (["elsewhere", "x.tar", "k"], "the stream reads other data: .*/a"),
        ("a00000", "a restore key is"),
        (None, "a restore key is"),
        ([str(folder), "shards/data-001.tar", "a00000"], "no sample"),
    ]:
        with pytest.raises(UnknownSampleError, match=message):
            restore_record(stream, key)
    with pytest.raises(UnknownSampleError, match="leaves the sample out"):
        restore_record(stream.filter(lambda one: False), [str(folder), "", "a00000"])


def test_wrong_arguments_are_refused(folder):
    with pytest.raises(InputError, match="no such file"):
        crude(folder / "nowhere")
    with pytest.raises(StreamDefinitionError, match="duplicates is 'any'"):
        crude(folder, duplicates="any")
    with pytest.raises(StreamArgumentError, match="parts is 'txt'"):
        read_tar(folder, parts="txt")


def test_the_index_follows_choices_by_position_and_refuses_functions(folder):
    rows = list(crude(folder).shuffle(0, seed=1).take(5).index())
    assert [row["key"] for row in rows] == [
        one["__key__"] for one in crude(folder).shuffle(0, seed=1).take(5)
    ]
    with pytest.raises(StreamDefinitionError, match="cook it first"):
        crude(folder).map(len).index()


def test_digests_of_parts_are_in_the_index(folder):
    row = next(iter(crude(folder, digests=True).index()))
    assert set(row["digests"]) == {"json", "txt"}
    assert len(row["digests"]["txt"]) == 16


def test_lines_are_read_without_a_row_for_each(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(12)))
    monkeypatch.delattr(NumberedSamples, "row")

    found = list(crude(path))
    assert [json.loads(one["json"])["n"] for one in found] == list(range(12))
    assert sorted(crude(path).shuffle(0), key=lambda one: int(one["__key__"])) == found
    stage = crude(path).stage
    assert stage.sample_of_key("a.jsonl", "11") == found[11]
    for unknown in ("12", "011", "x"):
        with pytest.raises(UnknownSampleError):
            stage.sample_of_key("a.jsonl", unknown)
