"""Tests of ``export.WebDataset``: `webdataset` reads the shards back."""

import base64
import subprocess
import tarfile
from pathlib import Path

import pytest
import webdataset

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError, StorageError
from tests.datasets.exporters.folders import names_in

# `webdataset` leaves the files that it has read to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

RECORDS = [{"text": f"text {n} " * (n % 50), "n": n, "meta": {"k": n}} for n in range(300)]


def samples(folder: str) -> list[dict]:
    shards = sorted(str(path) for path in Path(folder).glob("*.tar"))
    return list(webdataset.WebDataset(shards, shardshuffle=False, empty_check=False).decode())


@pytest.mark.parametrize("number", ["%06d", "{:06d}"])
def test_shards_are_read_back_in_order(tmp_path, number):
    pattern = tmp_path / "shards" / f"train-{number}.tar"
    folder = data.export.WebDataset(pattern, shard_bytes=50_000)(RECORDS)

    found = samples(folder)
    assert [sample["json"] for sample in found] == RECORDS
    assert [sample["__key__"] for sample in found[:2]] == ["000000000", "000000001"]
    shards = sorted(path for path in Path(folder).glob("*.tar"))
    assert [path.name for path in shards[:2]] == ["train-000000.tar", "train-000001.tar"]
    assert len(shards) > 4
    for path in shards:
        with tarfile.open(path) as tar:
            last = tar.getmembers()[-1]
        end = last.offset_data + -(-last.size // 512) * 512 + 1024
        assert end <= 50_000
        assert path.stat().st_size == -(-end // 10240) * 10240


def test_members_are_those_that_other_programs_write(tmp_path):
    keys = ["a", "x" * 95, "x" * 96, "long/" * 60 + "key", "größe", "日本"]
    records = [{"__key__": key, "text": "t" * (300 * number)} for number, key in enumerate(keys)]
    folder = data.export.WebDataset(tmp_path / "w" / "a-%d.tar", members={"txt": "text"})(records)

    with tarfile.open(Path(folder) / "a-0.tar") as tar:
        found = [(one.name, tar.extractfile(one).read().decode()) for one in tar]
        plain = tar.getmembers()[0]
    assert found == [(f"{one['__key__']}.txt", one["text"]) for one in records]
    assert (plain.mode, plain.uid, plain.mtime, plain.isfile()) == (0o644, 0, 0, True)
    info = tarfile.TarInfo("a.txt")
    assert (Path(folder) / "a-0.tar").read_bytes()[:512] == info.tobuf(tarfile.USTAR_FORMAT)
    listed = subprocess.run(
        ["tar", "-tf", Path(folder) / "a-0.tar"], capture_output=True, check=True, text=True
    ).stdout
    assert listed.splitlines()[0] == "a.txt"
    assert len(listed.splitlines()) == len(records)
    assert [sample["txt"] for sample in samples(folder)] == [one["text"] for one in records]


def test_members_and_keys_are_chosen(tmp_path):
    members = {"txt": "text", "json": "meta", "cls": "n"}
    records = [
        {"__key__": f"part/{n:03d}", "text": f"text {n}", "n": n, "meta": {"k": [n]}}
        for n in range(3)
    ]
    folder = data.export.WebDataset(tmp_path / "w" / "a-%d.tar", members=members)(
        [*records, {"__key__": "last", "text": None, "n": 7}]
    )

    found = samples(folder)
    assert [sample["__key__"] for sample in found] == ["part/000", "part/001", "part/002", "last"]
    assert found[1]["txt"] == "text 1"
    assert found[1]["json"] == {"k": [1]}
    assert found[3]["cls"] == 7
    assert "txt" not in found[3]


@pytest.mark.parametrize(
    "members",
    [
        *({}, ["txt"], "txt", {"txt": 5}, {5: "text"}),
        *({ending: "text"} for ending in ("", "a/b", "../x", ".txt", "t\0", "a b", "txt\n")),
        {"txt": "text", "TXT": "meta"},
    ],
)
def test_members_that_readers_cannot_tell_apart_are_refused(members):
    with pytest.raises(DefinitionError, match=r"members is|'members' must be Mapping"):
        data.export.WebDataset("shards/a-%d.tar", members=members)


def test_a_record_without_any_member_is_an_error(tmp_path):
    members = {"txt": "t", "cls": "n"}
    exporter = data.export.WebDataset(
        tmp_path / "w" / "a-%d.tar", members=members, _missing="allow"
    )
    with pytest.raises(
        ExportError, match=r"line 2\): nothing is in the columns of its members \(t, n\)"
    ) as caught:
        exporter([{"t": "x"}, {"t": None, "other": 1}])
    assert caught.value.line == 2


def test_a_record_larger_than_a_shard_has_its_own(tmp_path):
    records = [{"text": "x" * size} for size in (10, 9000, 10)]
    folder = data.export.WebDataset(tmp_path / "w" / "a-%d.tar", shard_bytes=2000)(records)

    assert [sample["json"] for sample in samples(folder)] == records
    assert len(list(Path(folder).glob("*.tar"))) == 3


def test_no_records_make_one_empty_shard(tmp_path):
    folder = data.export.WebDataset(tmp_path / "w" / "a-%03d.tar")([])

    assert [path.name for path in Path(folder).glob("*.tar")] == ["a-000.tar"]
    assert samples(folder) == []


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        *((["a", "b.c"], 2), (["a", "a"], 2), ([""], 1), ([7], 1), (["a", "../b"], 2), (["/a"], 1)),
        *((["__meta__/a"], 1), (["a", "__x__/y/z"], 2), (["b", "d/.hidden"], 2), ([".h"], 1)),
    ],
)
def test_keys_that_readers_cannot_tell_apart_are_errors(tmp_path, keys, line):
    with pytest.raises(ExportError) as caught:
        data.export.WebDataset(tmp_path / "w" / "a-%d.tar")([{"__key__": key} for key in keys])
    assert (caught.value.line, caught.value.column) == (line, "__key__")
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    "pattern", ["a-%06d.tar", "shards/a.tar", "shards/%d-%d.tar", "shards/{partition}-%d.tar"]
)
def test_a_pattern_needs_a_folder_and_one_number(pattern):
    with pytest.raises(DefinitionError, match="pattern is"):
        data.export.WebDataset(pattern)
    with pytest.raises(DefinitionError, match="shard_bytes"):
        data.export.WebDataset("shards/a-%d.tar", shard_bytes=0)


def test_fewer_shards_leave_none_of_the_export_before(tmp_path):
    pattern = tmp_path / "w" / "a-%d.tar"
    data.export.WebDataset(pattern, shard_bytes=10_000)(RECORDS)
    folder = data.export.WebDataset(pattern)(RECORDS[:3])

    assert [sample["json"] for sample in samples(folder)] == RECORDS[:3]
    assert names_in(folder) == [".dataops_export", "a-0.tar"]


def test_a_folder_with_other_files_is_refused(tmp_path):
    with pytest.raises(StorageError, match="name a folder of its own"):
        (tmp_path / "other").touch()
        data.export.WebDataset(tmp_path / "a-%d.tar")(RECORDS[:1])


def test_bytes_are_written_as_bytes(tmp_path):
    content = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    text = base64.b64encode(content).decode()
    members = {"png": "image", "seg.JPG": "mask", "txt": "image", "npy": "array"}
    records = [
        {"image": text, "mask": f"data:image/jpeg;base64,{text}", "array": {"bytes": text}},
        {"image": text, "mask": None},
    ]
    folder = data.export.WebDataset(tmp_path / "w" / "a-%d.tar", members=members)(records)

    with tarfile.open(next(Path(folder).glob("*.tar"))) as tar:
        found = {one.name: tar.extractfile(one).read() for one in tar}
    assert found == {
        "000000000.png": content,
        "000000000.seg.JPG": content,
        "000000000.txt": text.encode(),
        "000000000.npy": content,
        "000000001.png": content,
        "000000001.txt": text.encode(),
    }


def test_the_extensions_of_bytes_are_chosen(tmp_path):
    exporter = data.export.WebDataset(
        tmp_path / "w" / "a-%d.tar", members={"dat": "x", "png": "y"}, binary=["DAT"]
    )
    folder = exporter([{"x": "AAE=", "y": "text"}])

    with tarfile.open(next(Path(folder).glob("*.tar"))) as tar:
        assert [tar.extractfile(one).read() for one in tar] == [b"\0\1", b"text"]


@pytest.mark.parametrize("value", ["no base64", "AAE", 7, ["AAE="], {"path": "x"}, {"bytes": 7}])
def test_bytes_that_are_no_base64_are_errors(tmp_path, value):
    exporter = data.export.WebDataset(tmp_path / "w" / "a-%d.tar", members={"png": "image"})
    with pytest.raises(ExportError, match="the value is no base64 text") as caught:
        exporter([{"image": "AAE="}, {"image": value}])
    assert (caught.value.line, caught.value.column) == (2, "image")
