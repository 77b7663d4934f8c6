"""Tests of ``read_huggingface`` with datasets on the Hub, against a Hub on this machine."""

import io
import json
import os
import pickle
import subprocess
import sys
from itertools import islice
from typing import Any

import pytest

from dagster_dataops import errors
from dagster_dataops.readers import read_huggingface
from dagster_dataops.testing import assert_resumes_anywhere
from tests.hub_server import Hub, running, use

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
http = pytest.importorskip("huggingface_hub.utils._http")

ROWS = [{"n": n, "text": f"text {n}"} for n in range(60)]


@pytest.fixture(autouse=True)
def hub(monkeypatch):
    with running() as found:
        use(found, monkeypatch)
        monkeypatch.setattr(http.time, "sleep", lambda _: None)
        yield found


def parquet(rows: list[dict[str, Any]], group: int = 10) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=group)
    return file.getvalue()


def shards(*parts: list[dict[str, Any]], split: str = "train") -> dict[str, bytes]:
    return {f"data/{split}-{n:05d}.parquet": parquet(rows) for n, rows in enumerate(parts)}


def numbers(*args: Any, **options: Any) -> list[int]:
    return [one["n"] for one in read_huggingface("org/name", *args, **options)]


def reads(hub: Hub) -> list[str]:
    return [path for method, path in hub.calls if "/resolve/" in path and method == "GET"]


def test_the_rows_of_a_split_are_read_in_the_order_of_the_files(hub):
    files = shards(ROWS[:25], ROWS[25:]) | shards(ROWS[:3], split="test")
    hub.commit("org/name", files | {"README.md": b"text"})

    assert list(read_huggingface("org/name")) == ROWS
    assert numbers(split="test") == [0, 1, 2]
    assert next(iter(read_huggingface("org/name", ["text"]))) == {"text": "text 0"}
    with pytest.raises(errors.StreamSourceError, match="no Parquet files of the split; it has"):
        numbers(split="validation")


def test_files_are_those_that_the_card_names(hub):
    hub.commit(
        "org/name", {f"{name}.parquet": parquet([{"n": n}]) for n, name in enumerate("abcd")}
    )
    hub.cards["org/name"] = {
        "configs": [
            {"config_name": "default", "data_files": [{"split": "train", "path": "[bc].parquet"}]},
            {"config_name": "more", "data_files": [{"split": "test", "path": ["d.*", "a.*"]}]},
            {"config_name": "plain", "data_files": "*.parquet"},
        ]
    }

    assert numbers() == [1, 2]
    assert numbers(split="test", config="more") == [3, 0]
    assert numbers(config="plain") == [0, 1, 2, 3]
    for options, known in (({"config": "x"}, "default, more, plain"), ({"split": "test"}, "train")):
        with pytest.raises(errors.StreamSourceError, match=known):
            numbers(**options)


@pytest.mark.parametrize("files", [None, "*.parquet", [{"split": "train", "path": ["p*"]}]])
def test_files_are_those_of_the_folder_that_the_card_names(hub, files):
    names = ("test/part.parquet", "test/sub/x.txt", "french/part.parquet", "part.parquet")
    hub.commit("org/name", {name: parquet([{"n": n}]) for n, name in enumerate(names)})
    configs = [{"config_name": "default", "data_dir": "test"}]
    configs += [{"config_name": "fr", "data_dir": "./french/"}]
    hub.cards["org/name"] = {"configs": [{**one, "data_files": files} for one in configs]}

    assert numbers() == [0]
    assert numbers(config="fr") == [2]


def test_files_of_the_split_that_are_no_parquet_are_not_left_out(hub):
    hub.commit("org/name", {"a.parquet": parquet(ROWS[:1]), "b.jsonl": b"{}"})
    for files in (["a.parquet", "b.jsonl"], ["b.*"]):
        hub.cards["org/name"] = {"configs": [{"config_name": "default", "data_files": files}]}
        with pytest.raises(errors.StreamSourceError, match=r"no Parquet files \(b\.jsonl\)"):
            numbers()
    files = ["*", "none-*"]
    hub.cards["org/name"] = {"configs": [{"config_name": "default", "data_files": files}]}
    assert numbers() == [0]


def test_splits_have_other_names_and_all_files_are_the_training_split_if_none_has_one(hub):
    hub.commit("org/name", {"dev/0.parquet": parquet(ROWS[:1]), "train/0.parquet": parquet(ROWS)})
    assert numbers(split="validation") == [0]
    hub.commit("org/other", {"constraints.parquet": parquet(ROWS[:2])})
    assert len(list(read_huggingface("org/other"))) == 2
    hub.commit("org/third", {"x.json": b"{}"})
    with pytest.raises(errors.StreamSourceError, match="refs/convert/parquet"):
        list(read_huggingface("org/third"))


@pytest.mark.slow
def test_it_resumes_anywhere_and_reads_no_earlier_row_group(hub):
    hub.commit("org/name", shards(ROWS[:7], ROWS[7:12]))
    assert_resumes_anywhere(lambda: read_huggingface("org/name"))

    wide = [{"n": n, "text": os.urandom(60_000).hex()} for n in range(150)]
    hub.commit("org/large", {"train.parquet": parquet(wide)})
    stream = read_huggingface("org/large").and_return()
    assert len(list(islice(stream, 125))) == 125
    state, hub.sent = json.loads(json.dumps(stream.state_dict())), 0
    again = read_huggingface("org/large").and_return()
    again.load_state_dict(state)
    assert [one["n"] for one in again] == list(range(125, 150))
    assert 0 < hub.sent < len(hub.files("org/large")["train.parquet"]) * 0.7


def test_the_commit_is_the_identity(hub):
    first = hub.commit("org/name", shards(ROWS[:20]))
    stream = read_huggingface("org/name").and_return()
    assert len(list(islice(stream, 5))) == 5
    state = stream.state_dict()
    hub.commit("org/name", shards(ROWS[30:]))

    assert [one["n"] for one in stream] == list(range(5, 20))  # looked up once
    moved = read_huggingface("org/name").and_return()
    with pytest.raises(errors.StreamStateError, match="data"):
        moved.load_state_dict(state)
    pinned = read_huggingface("org/name", revision=first).and_return()
    pinned.load_state_dict(state)
    assert [one["n"] for one in pinned] == list(range(5, 20))


def test_a_process_gets_the_files_that_were_looked_up(hub):
    hub.commit("org/name", shards(ROWS[:20]))
    builder = read_huggingface("org/name")
    builder.and_return().state_dict()
    copy = pickle.loads(pickle.dumps(builder))
    hub.commit("org/name", shards(ROWS[:1]))
    assert len(list(copy)) == 20


def test_values_of_json_become_what_they_say(hub):
    table = pa.table({"tools": pa.array(['{"a": [1]}', None]), "n": [1, 2]})
    field = pa.field("tools", pa.string(), metadata={"ARROW:extension:name": "arrow.json"})
    table = table.cast(pa.schema([field, ("n", "int64")]))
    file = io.BytesIO()
    pq.write_table(table, file)
    hub.commit("org/name", {"train.parquet": file.getvalue()})
    assert list(read_huggingface("org/name")) == [
        {"tools": {"a": [1]}, "n": 1},
        {"tools": None, "n": 2},
    ]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_fails_is_asked_again(hub, status):
    hub.commit("org/name", shards(ROWS))
    failures = iter([status, status])
    hub.fault = lambda _, path: next(failures, None) if "/resolve/" in path else None
    assert numbers() == list(range(60))
    assert len(reads(hub)) == 3


def test_a_server_that_stays_down_and_a_short_body_are_errors(hub):
    hub.commit("org/name", shards(ROWS))
    hub.fault = lambda _, path: 500 if "/resolve/" in path else None
    with pytest.raises(errors.StreamSourceError, match=r"train-00000\.parquet"):
        numbers()

    def short(handler: Any) -> None:
        handler.raw(206, b"PAR1", {})

    hub.fault = lambda _, path: short if "/resolve/" in path else None
    stream = read_huggingface("org/name").and_return()
    with pytest.raises(errors.DataOpsError):
        list(stream)


def test_other_tokens_and_private_data_are_told(hub, monkeypatch):
    hub.commit("org/name", shards(ROWS))
    hub.private.add("org/name")
    assert len(numbers()) == 60
    for token in ("hf_wrong", ""):
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(
            errors.StreamSourceError, match="private, gated or missing, and no folder"
        ) as caught:
            numbers()
        assert "hf_wrong" not in str(caught.value)
    with pytest.raises(errors.StreamSourceError, match="private, gated or missing, and no folder"):
        list(read_huggingface("org/unknown"))
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with pytest.raises(errors.StreamSourceError, match="no revision 'v9'"):
        numbers(revision="v9")


def test_options_of_the_hub_are_refused_for_datasets_of_this_machine(tmp_path, monkeypatch):
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for dataset in ("org/name", "name", tmp_path):
        with pytest.raises(errors.StreamArgumentError, match="datasets on the Hub"):
            read_huggingface(dataset, revision="main")


@pytest.mark.slow
def test_the_address_of_the_hub_is_that_of_the_environment(hub):
    hub.commit("org/name", shards(ROWS))
    code = (
        "from dagster_dataops import readers\n"
        "print(len(list(readers.read_huggingface('org/name'))))"
    )
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "60\n"


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "dagster_dataops.readers.huggingface.hub_files", raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[hub\]"):
        read_huggingface("org/name")
