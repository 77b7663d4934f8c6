"""Tests of dagster_dataops.library.cook_operator: cook() in pipelines and as assets."""

import json

import dagster as dg
import pytest

from dagster_dataops import (
    Cooker,
    TextSample,
    basic_sample_keys,
    build_definitions,
    config,
    cook,
    cooker,
    crude,
    data,
    pipeline,
)
from dagster_dataops.errors import (
    CookerError,
    OutageError,
    PipelineDefinitionError,
    StreamDefinitionError,
)
from tests.training.filestores.shards import dataset, samples, stores, write_tar


@pytest.fixture(autouse=True)
def index_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    stores(tmp_path)
    return dataset(tmp_path / "a")


@cooker(need_primary=True)
def cook_all(sample, primary, foo):
    first = foo.get(json.loads(sample["json"])["aux"], sample)
    text = b"|".join([sample["txt"], first, primary.get("a00007.txt")])
    return TextSample(**basic_sample_keys(sample), text=text.decode())


def cook_text(sample):
    if sample["__key__"] == "a00005":
        return []
    return TextSample(**basic_sample_keys(sample), text=sample["txt"].decode())


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_every_mode_cooks_as_the_stream_does(folder, tmp_path, mode):
    source = crude(folder, aux={"foo": tmp_path / "aux"})
    with pipeline("captions") as ppl:
        ppl.cooked = cook(cook_all, _concurrency_mode=mode, _max_workers=2)

    found = ppl(source)

    expected = json.loads(json.dumps(list(source.cook(cook_all))))
    assert found == expected
    assert found[9]["text"] == "caption 9|aux 9|caption 7"


def test_lines_and_folders_are_cooked_by_their_index(tmp_path):
    stores(tmp_path)
    (tmp_path / "lines.jsonl").write_text('{"n":0}\n{"n":1}\n')
    cooked = cook(lambda sample: {"key": sample["__key__"], "n": json.loads(sample["json"])["n"]})
    assert cooked(crude(tmp_path / "lines.jsonl")) == [{"key": "0", "n": 0}, {"key": "1", "n": 1}]
    files = cook(lambda sample: {"key": sample["__key__"], "parts": len(sample)})
    assert files(crude(tmp_path / "imgs"))[-1]["key"] == "sub/x"


def test_a_source_that_is_not_cooked_is_refused_when_it_is_defined(folder):
    with pipeline("captions") as ppl:
        ppl.unique = data.dedup.Exact(input_key="text")
    for use in (lambda: build_definitions(ppl, source=crude(folder)), lambda: ppl(crude(folder))):
        with pytest.raises(
            PipelineDefinitionError,
            match=r"'unique' takes .*crude.*cook\(cookers\) before the node",
        ):
            use()
    with pytest.raises(StreamDefinitionError, match="cook it first"):
        with pipeline("other") as other:
            other.cooked = cook(cook_text)
        build_definitions(other, source=crude(folder).map(dict))


def test_a_source_without_a_cooker_is_refused_when_it_is_defined(folder):
    with pipeline("captions") as ppl:
        ppl.cooked = cook(Cooker(cook_text, {"kind": "web"}))
    with pytest.raises(CookerError, match=r"it has number=42; .* cook_text: kind='web'"):
        build_definitions(ppl, source=crude(folder))


def test_records_that_no_index_has_fail(folder):
    with pytest.raises(OutageError, match="no 'dataset', so it is not a line of the index"):
        cook(cook_text)([{"key": "x"}])


def test_the_index_is_an_asset_before_the_cooked_one(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "data_process_path", tmp_path / "results")
    with pipeline("captions") as ppl:
        ppl.cooked = cook(cook_text)
        ppl.unique = data.dedup.Exact(input_key="text")
    defs = build_definitions(ppl, source=crude(folder))
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert keys == {"captions/a_index", "captions/cooked", "captions/unique"}

    with dg.DagsterInstance.ephemeral() as instance:
        job = defs.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance)

        assert result.success
        rows = result.asset_value(["captions", "a_index"])
        assert [row["key"] for row in rows] == [f"a{n:05d}" for n in range(20)]
        assert len(list(result.asset_value(["captions", "unique"]))) == 19


def test_a_cooked_stream_is_a_source_of_its_own(folder):
    with pipeline("captions") as ppl:
        ppl.unique = data.dedup.Exact(input_key="text")
    source = crude(folder).cook(cook_text)
    assert len(ppl(source)) == 19
    keys = build_definitions(ppl, source=source).resolve_asset_graph().get_all_asset_keys()
    assert {key.to_user_string() for key in keys} == {"captions/a", "captions/unique"}


def test_a_shard_that_changed_after_indexing_fails_its_records(folder):
    rows = list(crude(folder).index())
    write_tar(folder / "shards/data-001.tar", samples("z", 0, 7))
    with pytest.raises(Exception, match=r"data-001.tar: .*Materialize the index again"):
        cook(cook_text, _ignore_errors=False)(rows)
    assert len(cook(cook_text, _stop_after_failures=0)(rows)) == 12
