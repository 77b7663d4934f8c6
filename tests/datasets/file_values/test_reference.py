"""Tests of references: what names a file, how it is read, and what is refused."""

import os
import pickle
import shutil
import tarfile
from hashlib import sha256
from pathlib import Path

import fsspec
import pytest

from dagster_dataops.files import (
    FileChangedError,
    FileError,
    FileReference,
    FileReferenceError,
)
from tests.each import each

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
DIGEST = f"sha256:{sha256(PNG).hexdigest()}"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(PNG)
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        tar.add(tmp_path / "a.png", "1.png")
    (tmp_path / "lines.jsonl").write_text('{"n":0}\n{"n":1}\n')
    (tmp_path / "with#mark.png").write_bytes(PNG)
    fsspec.filesystem("memory").pipe("/references/a.png", PNG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@each(
    "value",
    [
        "a.png",
        Path("a.png"),
        {"file": "a.png"},
        {"file": "a.png", "size": len(PNG), "digest": DIGEST, "media_type": "image/png"},
        {"file": "a.png", "caption": "a further key"},
        FileReference("a.png"),
        "shard.tar#1.png",
        "with#mark.png",
        "memory://references/a.png",
    ],
)
def test_a_file_is_read_where_it_is(value):
    reference = FileReference.of(value, "column 'image'")
    assert reference.read() == PNG
    with reference.open() as file:
        file.seek(-3, os.SEEK_END)
        assert file.read() == PNG[-3:]
        assert file.seek(8) == 8
        assert file.read(2) == PNG[8:10]
    with reference.local() as path:
        assert path.read_bytes() == PNG


def test_a_line_of_a_jsonl_file_and_an_absolute_path_and_a_file_url_are_files(folder):
    assert FileReference("lines.jsonl#1.json").read() == b'{"n":1}'
    assert FileReference(str(folder / "a.png")).read() == PNG
    assert FileReference(f"file://{folder}/a.png").read() == PNG


def test_a_file_url_may_have_escapes_and_a_name_that_looks_like_one_is_found(folder):
    for name in ("a bé.png", "a%20b.png"):
        (folder / name).write_bytes(name.encode())
        assert FileReference((folder / name).as_uri()).read() == name.encode()
        assert FileReference(f"file://{folder}/{name}").read() == name.encode()


def test_a_reference_is_a_plain_value_of_a_record_and_back():
    told = {"file": "a.png", "size": len(PNG), "digest": DIGEST, "media_type": "image/png"}
    assert FileReference.of(told).to_json() == told
    assert FileReference("a.png").with_facts(digest=True).to_json() == told
    found = FileReference("a.png").with_facts().to_json()
    assert found.pop("version").startswith("modified:")
    assert found == {name: told[name] for name in ("file", "size", "media_type")}


@each(
    "case",
    [
        (3, "is int, no reference to a file"),
        (None, "is NoneType"),
        ([], "is list"),
        ({}, "has the file None"),
        ({"file": ""}, "has the file ''"),
        ({"file": "a\0b"}, "has the file"),
        ({"file": 3}, "has the file 3"),
        ({"file": "a", "size": -1}, "has the size -1"),
        ({"file": "a", "size": True}, "has the size True"),
        ({"file": "a", "digest": "md5:1"}, "has the digest 'md5:1'"),
        ({"file": "a", "media_type": "png"}, "has the media_type 'png'"),
        ({"file": "a", "version": 3}, "has the version 3"),
    ],
)
def test_a_value_that_names_no_file_is_refused_with_its_place(case):
    value, found = case
    with pytest.raises(FileReferenceError) as caught:
        FileReference.of(value, "column 'image'")
    error = caught.value
    assert isinstance(error, FileError)
    assert isinstance(error, ValueError)
    assert error.where.startswith("column 'image'")
    assert found in error.found
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@each(
    "case",
    [
        ("none.png", "No such file"),
        (".", "is no file"),
        ("shard.tar#2.png", "no file '2.png' among 1; nearest '1.png'"),
        ("shard.tar#../a.png", "leads out of the store"),
        ("none.tar#1.png", "there is no such file or folder"),
        ("memory://references/none.png", "there is no such file"),
        ("nonsense://x/y", "nonsense"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(case):
    name, found = case
    for use in (lambda one: one.read(), lambda one: one.with_facts()):
        with pytest.raises(FileError) as caught:
            use(FileReference(name))
        assert caught.value.where == name
        assert found in caught.value.found


@each(
    "told",
    [{"size": 3}, {"digest": f"sha256:{'0' * 64}"}, {"version": "modified:1"}],
)
def test_another_file_than_the_record_names_is_refused(told):
    reference = FileReference.of({"file": "a.png", **told})
    with pytest.raises(FileChangedError, match="the record names"):
        reference.read()
    with pytest.raises(FileChangedError, match="the record names"), reference.local():
        pass


def test_a_file_that_is_replaced_while_it_is_open_is_an_error(folder):
    with pytest.raises(FileChangedError, match="replaced while it was read"):  # noqa: SIM117
        with FileReference("a.png").open() as file:
            file.read(1)
            (folder / "a.png").write_bytes(PNG * 2)


def test_a_file_that_is_replaced_by_one_of_the_same_time_and_size_is_an_error(folder):
    (folder / "new.png").write_bytes(bytes(len(PNG)))
    shutil.copystat(folder / "a.png", folder / "new.png")
    with pytest.raises(FileChangedError, match="replaced while it was read"):  # noqa: SIM117
        with FileReference("a.png").open():
            (folder / "new.png").replace(folder / "a.png")


def test_a_replaced_shard_is_read_anew(folder):
    reference = FileReference("shard.tar#1.png")
    assert reference.read() == PNG
    (folder / "b.png").write_bytes(b"other")
    with tarfile.open(folder / "new.tar", "w") as tar:
        tar.add(folder / "b.png", "1.png")
    (folder / "new.tar").replace(folder / "shard.tar")
    assert reference.read() == b"other"


@pytest.fixture
def pread_bytes(monkeypatch):
    """The numbers of bytes of all reads."""
    read, pread = [], os.pread

    def counted(*arguments):
        data = pread(*arguments)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    return read


@pytest.mark.parametrize("name", ["1.png", f"{'long' * 40}.png"])
def test_a_file_in_a_shard_is_read_by_ranges(folder, pread_bytes, name):
    data = PNG + bytes(9_000_000)
    (folder / "big.png").write_bytes(data)
    with tarfile.open(folder / "big.tar", "w") as tar:
        tar.add(folder / "big.png", name)
    reference = FileReference(f"big.tar#{name}")
    with reference.open() as file:
        assert file.read(8) == PNG[:8]
        assert file.seek(-1, os.SEEK_END) == len(data) - 1
        assert file.read() == b"\0"
    assert sum(pread_bytes) < 3_000_000
    assert reference.read() == data
    assert reference.with_facts().size == len(data)


def test_a_file_in_a_folder_or_a_compressed_shard_is_read_too(folder):
    (folder / "images").mkdir()
    (folder / "images" / "a.png").write_bytes(PNG)
    with tarfile.open(folder / "shard.tar.gz", "w:gz") as tar:
        tar.add(folder / "a.png", "1.png")
    for name in ("images#a.png", "shard.tar.gz#1.png", "filesystem+memory://references#a.png"):
        reference = FileReference(name)
        assert reference.read() == PNG
        with reference.open() as file:
            assert file.read(8) == PNG[:8]
    with FileReference("images#a.png").local() as path:
        assert path == folder / "images" / "a.png"
    (folder / "images" / "out").symlink_to(folder / "a.png")
    for name, found in (("images#b.png", "no file 'b.png'"), ("images#out", "leads out of")):
        with pytest.raises(FileError, match=found):
            FileReference(name).read()


def test_a_shard_that_is_replaced_or_cut_off_while_it_is_open_is_an_error(folder):
    with (
        pytest.raises(FileChangedError, match="replaced while it was read"),
        FileReference("shard.tar#1.png").open(),
    ):
        os.utime(folder / "shard.tar")
    with (
        pytest.raises(FileError, match="is cut off"),
        FileReference("shard.tar#1.png").open() as file,
    ):
        os.truncate(folder / "shard.tar", 600)
        file.read()


def test_a_file_over_the_limit_is_not_read():
    assert FileReference("a.png").read(max_bytes=len(PNG)) == PNG
    for name in ("a.png", "shard.tar#1.png", "memory://references/a.png"):
        with pytest.raises(FileError, match=r"more than max_bytes=99 bytes"):
            FileReference(name).read(max_bytes=99)


def test_a_file_of_another_type_than_its_name_is_refused():
    assert FileReference("a.png").media_type_of(PNG) == "image/png"
    assert FileReference("a").media_type_of(PNG) == "image/png"
    assert FileReference("notes.md").media_type_of(b"text") == "text/markdown"
    with pytest.raises(FileError, match="is image/png by its content, image/jpeg by its name"):
        FileReference("a.jpg").media_type_of(PNG)
    with pytest.raises(FileError, match="application/pdf by the record"):
        FileReference("a", media_type="application/pdf").media_type_of(PNG)


def test_a_text_that_is_too_long_for_a_path_is_not_repeated_in_the_error():
    url = "data:image/png;base64," + "A" * 100_000
    with pytest.raises(FileError, match=r"^data:image/png;base64,A{58}\.\.\.: has 100,022 char"):
        FileReference.of(url).read()
