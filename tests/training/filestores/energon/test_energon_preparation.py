"""Prepared shards have the files of ``energon prepare``, and are read by them."""

import json
import sqlite3
import struct
import subprocess
import sys
from itertools import pairwise

import pytest
import yaml

from dagster_dataops import (
    basic_sample_keys,
    cooker,
    crude,
    data,
    file_store,
    metadataset,
    prepare_energon,
)
from dagster_dataops.errors import (
    ConfigurationError,
    DuplicateKeyError,
    InputError,
    StreamSourceError,
)
from tests.training.filestores.shards import samples, write_tar


@pytest.fixture
def folder(tmp_path):
    for shard in range(3):
        write_tar(tmp_path / "ds" / "shards" / f"d-{shard}.tar", samples("k", shard * 4, 4))
    return tmp_path / "ds"


def test_the_index_says_where_every_part_lies(folder):
    assert prepare_energon(folder) == {f"shards/d-{n}.tar": 4 for n in range(3)}
    with sqlite3.connect(folder / ".nv-meta" / "index.sqlite") as index:
        rows = index.execute(
            "SELECT tar_file_id, sample_key, part_name, content_byte_offset, content_byte_size"
            " FROM samples JOIN sample_parts USING (tar_file_id, sample_index)"
        ).fetchall()
        bounds = index.execute("SELECT tar_file_id, byte_offset, byte_size FROM samples").fetchall()
    found = {}
    for shard, key, part, offset, size in rows:
        content = (folder / f"shards/d-{shard}.tar").read_bytes()
        found[f"{key}.{part}"] = content[offset : offset + size]
    offsets = [
        struct.unpack("<5Q", (folder / f"shards/d-{n}.tar.idx").read_bytes()) for n in range(3)
    ]

    assert found == dict(samples("k", 0, 12))
    assert bounds == [
        (n, start, end - start) for n in range(3) for start, end in pairwise(offsets[n])
    ]


def test_the_texts_are_those_of_energon(folder):
    prepare_energon(folder, subflavors={"kind": "page"}, exclude=["shards/d-0.tar/k00001"])
    meta = folder / ".nv-meta"

    assert yaml.safe_load((meta / "split.yaml").read_text()) == {
        "exclude": ["shards/d-0.tar/k00001"],
        "split_parts": {"train": [f"shards/d-{n}.tar" for n in range(3)], "val": [], "test": []},
    }
    assert yaml.safe_load((meta / "dataset.yaml").read_text()) == {
        "__module__": "megatron.energon",
        "__class__": "CrudeWebdataset",
        "subflavors": {"kind": "page"},
    }
    assert json.loads((meta / ".info.json").read_text())["shard_counts"] == {
        f"shards/d-{n}.tar": 4 for n in range(3)
    }
    assert len((meta / "index.uuid").read_text()) == 36
    assert sorted(path.name for path in meta.iterdir()) == sorted(
        [".info.json", "dataset.yaml", "index.sqlite", "index.uuid", "split.yaml"]
    )


def test_it_is_read_back_with_its_split(folder):
    prepare_energon(folder, split={"train": 2, "val": 1}, subflavors={"kind": "page"})
    train, val = list(crude(folder)), list(crude(folder, split="val"))

    assert [len(train), len(val)] == [8, 4]
    assert (val[0]["txt"], val[0]["__subflavors__"]) == (b"caption 8", {"kind": "page"})
    assert file_store(folder).get("k00011.txt") == b"caption 11"


@pytest.mark.parametrize(
    ("shares", "sizes"),
    [
        ({"train": 8, "val": 1, "test": 1}, [2, 1, 0]),
        ({"train": 1}, [3]),
        ({"train": 0.5, "val": 0.5}, [2, 1]),
    ],
)
def test_each_part_has_consecutive_shards(folder, shares, sizes):
    prepare_energon(folder, split=shares)
    parts = yaml.safe_load((folder / ".nv-meta" / "split.yaml").read_text())["split_parts"]

    assert [len(names) for names in parts.values()] == sizes
    assert [name for names in parts.values() for name in names] == [
        f"shards/d-{n}.tar" for n in range(3)
    ]


def test_equal_shards_have_the_same_files(folder):
    prepare_energon(folder)
    names = [".nv-meta/index.sqlite", ".nv-meta/index.uuid", "shards/d-0.tar.idx"]
    before = [(folder / name).read_bytes() for name in names]
    prepare_energon(folder, overwrite=True)

    assert [(folder / name).read_bytes() for name in names] == before


def test_a_key_that_occurs_twice_is_named_with_its_shards_and_nothing_is_left(folder):
    write_tar(folder / "shards" / "d-3.tar", samples("k", 2, 1))

    with pytest.raises(DuplicateKeyError, match=r"k00002.*d-0.tar.*d-3.tar"):
        prepare_energon(folder)
    assert [path.name for path in folder.iterdir()] == ["shards"]
    assert not list(folder.rglob("*.idx"))


def test_parts_that_stand_apart_are_a_key_that_occurs_twice(folder):
    write_tar(folder / "shards" / "d-3.tar", [("x.txt", b""), ("y.txt", b""), ("x.json", b"")])

    with pytest.raises(DuplicateKeyError, match=r"'x'"):
        prepare_energon(folder)


def test_a_torn_shard_is_an_error(folder):
    path = folder / "shards" / "d-1.tar"
    path.write_bytes(path.read_bytes()[:1700])

    with pytest.raises(StreamSourceError, match=r"d-1.tar"):
        prepare_energon(folder)


def test_folders_without_shards_and_shares_below_zero_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="no local folder|not a local folder"):
        prepare_energon(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="at least 0"):
        prepare_energon(folder, split={"train": -1})


def test_an_export_is_prepared(folder, tmp_path):
    records = [{"text": f"t{n}"} for n in range(9)]
    made = data.export.WebDataset(
        tmp_path / "out" / "s-%d.tar", shard_bytes=4000, members={"txt": "text"}, energon=True
    )(records)
    content = {
        "__module__": "megatron.energon",
        "__class__": "MetadatasetV2",
        "splits": {"train": {"path": made}},
    }

    assert [one["txt"].decode() for one in metadataset(content)] == [one["text"] for one in records]


def test_a_cooker_of_one_split_finds_the_files_of_the_others(folder):
    prepare_energon(folder, split={"train": 2, "val": 1})
    (first, *_) = crude(folder)

    @cooker(need_primary=True)
    def cook_primary(sample, primary):
        return {**basic_sample_keys(sample), "other": primary.get(f"{first['__key__']}.txt")}

    found = list(crude(folder, split="val").cook(cook_primary))
    assert {one["other"] for one in found} == {first["txt"]}


@pytest.mark.slow
def test_a_command_prepares_shards(folder):
    command = [sys.executable, "-m", "dagster_dataops", "prepare", folder]
    done = subprocess.run(
        [*command, "--split", "train=2", "val=1"], capture_output=True, text=True, check=True
    )
    again = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout == "12 samples in 3 shards\n"
    assert (again.returncode, "overwrite" in again.stderr) == (1, True)
    assert len(list(crude(folder, split="val"))) == 4
