"""Tests of dagster_dataops.training.filestores.energon.energon_layout and prepared_index."""

import json
import sqlite3
import struct

import pytest

from dagster_dataops import crude, file_store
from dagster_dataops.errors import (
    IndexOutdatedError,
    InputError,
    PathEscapeError,
    StreamDefinitionError,
)
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.training.filestores.energon.energon_layout import expanded
from dagster_dataops.training.filestores.tars.shard_scan import END, START, TarShard, scan
from tests.training.filestores.shards import CRUDE, dataset, samples, write_prepared, write_tar


def keys(stream):
    return [one["__key__"] for one in stream]


def prepare(folder):
    """Write ``index.sqlite`` and the ``.idx`` files, as ``energon prepare`` does."""
    counts = json.loads((folder / ".nv-meta" / ".info.json").read_text())["shard_counts"]
    connection = sqlite3.connect(folder / ".nv-meta" / "index.sqlite")
    connection.executescript(
        """
        CREATE TABLE samples (id INTEGER PRIMARY KEY, tar_file_id INTEGER, sample_key TEXT UNIQUE,
            sample_index INTEGER, byte_offset INTEGER, byte_size INTEGER);
        CREATE TABLE sample_parts (id INTEGER PRIMARY KEY, tar_file_id INTEGER,
            sample_index INTEGER, part_name TEXT, content_byte_offset INTEGER,
            content_byte_size INTEGER);
        """
    )
    for number, name in enumerate(counts):
        found = scan(TarShard(name, Location(str(folder / name))), str(folder), "error")
        starts = [*(one[START] for one in found.samples), *(one[END] for one in found.samples[-1:])]
        (folder / f"{name}.idx").write_bytes(struct.pack(f"<{len(starts)}Q", *starts))
        for at, (key, start, parts) in enumerate(found.rows()):
            row = (number, key, at, start, starts[at + 1] - start)
            connection.execute("INSERT INTO samples VALUES (NULL, ?, ?, ?, ?, ?)", row)
            for part, (offset, size) in parts.items():
                row = (number, at, part, offset, size)
                connection.execute("INSERT INTO sample_parts VALUES (NULL, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()


def test_texts_with_braces_are_expanded():
    assert list(expanded("s/{000..002}.tar")) == ["s/000.tar", "s/001.tar", "s/002.tar"]
    assert list(expanded("{a,b}-{8..10}.tar"))[:4] == ["a-8.tar", "a-9.tar", "a-10.tar", "b-8.tar"]


def test_split_and_subflavors_are_those_of_the_prepared_files(tmp_path):
    split = (
        "exclude: ['shards/data-001.tar', 'shards/data-000.tar/a00002']\n"
        "split_parts:\n  train: ['shards/data-{000..001}.tar']\n  val: ['shards/data-002.tar']\n"
    )
    folder = dataset(tmp_path / "a", (4, 3, 2))
    (folder / ".nv-meta" / "split.yaml").write_text(split)

    assert keys(crude(folder)) == ["a00000", "a00001", "a00003"]
    assert keys(crude(folder, split="val")) == ["a00007", "a00008"]
    assert len(keys(crude(folder, split=None))) == 5
    assert sorted(keys(crude(folder).shuffle(0))) == ["a00000", "a00001", "a00003"]
    assert next(iter(crude(folder)))["__subflavors__"] == {"number": 42}
    assert next(iter(crude(folder, subflavors={"number": 1})))["__subflavors__"] == {"number": 1}
    with pytest.raises(StreamDefinitionError, match=r"no split part 'test'; .* train, val"):
        crude(folder, split="test")


def test_a_dataset_that_is_not_crude_or_has_unknown_keys_is_refused(tmp_path):
    folder = dataset(tmp_path / "a")
    for text, message in [
        ("__class__: OCRSample\n", "declare sample_type"),
        (f"{CRUDE}sample_loader: x.py:load\n", "sample_loader is not allowed"),
        (f"{CRUDE}field_map: {{}}\n", "field_map is not allowed"),
        (f"{CRUDE}subflavours: {{}}\n", "'subflavours' is unknown"),
        ("[]", "must be a mapping"),
    ]:
        (folder / ".nv-meta" / "dataset.yaml").write_text(text)
        with pytest.raises(InputError, match=message):
            crude(folder)


@pytest.mark.parametrize("config", ["dataset_config", "split_config"])
def test_a_configuration_that_is_chosen_must_be_there(tmp_path, config):
    folder = dataset(tmp_path / "a")
    with pytest.raises(InputError, match=r"other\.yaml: there is no such file"):
        crude(folder, **{config: "other.yaml"})


def test_the_dataset_names_the_file_of_its_split(tmp_path):
    folder = dataset(tmp_path / "a")
    meta = folder / ".nv-meta"
    every = keys(crude(folder))
    split = (meta / "split.yaml").read_text()
    (meta / "other.yaml").write_text(f"{split}\nexclude: [shards/data-000.tar/a00000]\n")
    (meta / "dataset.yaml").write_text(f"{CRUDE}split_config: other.yaml\n")

    assert keys(crude(folder)) == every[1:]
    assert keys(crude(folder, split_config="split.yaml")) == every
    for name in ("../split.yaml", "/split.yaml", "3", "''"):
        (meta / "dataset.yaml").write_text(f"{CRUDE}split_config: {name}\n")
        with pytest.raises(PathEscapeError, match="leads out"):
            crude(folder)
    (meta / "dataset.yaml").write_text(f"{CRUDE}split_config: missing.yaml\n")
    with pytest.raises(InputError, match=r"missing\.yaml: there is no such file"):
        crude(folder)


def test_a_split_of_unprepared_shards_is_refused(tmp_path):
    write_tar(tmp_path / "x.tar", samples("k", 0, 2))
    (tmp_path / "crude.yaml").write_text(f"{CRUDE}split_config: split.yaml\n")
    with pytest.raises(InputError, match="split_config has no effect without"):
        crude(tmp_path)


def test_unprepared_shards_have_a_configuration_beside_them(tmp_path):
    write_tar(tmp_path / "x.tar", samples("k", 0, 2))
    (tmp_path / "crude.yaml").write_text(f"{CRUDE}subflavors: {{kind: plain}}\npart_filter: [txt]")
    sample = next(iter(crude(tmp_path)))
    assert sample["__subflavors__"] == {"kind": "plain"}
    assert [one for one in sample if not one.startswith("__")] == ["txt"]
    assert sample["__sources__"][0].file_names == ["k00000.txt"]


def test_the_index_that_energon_wrote_is_used_and_no_shard_is_scanned(tmp_path, monkeypatch):
    folder = dataset(tmp_path / "a")
    prepare(folder)
    monkeypatch.delattr("dagster_dataops.training.filestores.tars.tar_index.scan")

    store = file_store(folder)

    assert store.get("a00013.txt") == b"caption 13"
    assert len(store) == 40
    assert sorted(keys(crude(folder).shuffle(0))) == sorted(keys(crude(folder)))
    assert len(list(crude(folder).index())) == 20


def test_a_prepared_index_that_does_not_fit_is_noticed(tmp_path):
    folder = dataset(tmp_path / "a")
    prepare(folder)
    write_tar(folder / "shards/data-001.tar", samples("b", 0, 7)[1:])
    with pytest.raises(IndexOutdatedError, match="data-001.tar"):
        file_store(folder).get("a00009.txt")
    write_tar(folder / "shards/data-001.tar", [])
    (folder / "shards/data-001.tar").write_bytes(bytes(1024))
    for stream in (crude(folder), crude(folder).shuffle(0)):
        with pytest.raises(IndexOutdatedError, match=r"data-001.tar"):
            list(stream)


def test_a_prepared_folder_without_a_split_has_all_shards(tmp_path):
    folder = write_prepared(dataset(tmp_path / "a"), {"shards/data-002.tar": 6})
    (folder / ".nv-meta" / "split.yaml").unlink()
    assert len(keys(crude(folder))) == 6


@pytest.mark.parametrize("name", ["../other/data.tar", "/etc/data.tar", "shards/../../x.tar", ""])
@pytest.mark.parametrize("listed_in", ["split", "counts"])
def test_a_shard_that_leads_out_of_its_dataset_is_refused(tmp_path, name, listed_in):
    split = f"split_parts:\n  train:\n    - '{name}'\n"
    if listed_in == "split":
        folder = write_prepared(dataset(tmp_path / "a"), {"shards/data-002.tar": 6}, split=split)
    else:
        folder = write_prepared(dataset(tmp_path / "a"), {name: 6}, split="exclude: []\n")
    with pytest.raises(PathEscapeError, match="leads out"):
        crude(str(folder), **({"split": "train"} if listed_in == "split" else {}))
