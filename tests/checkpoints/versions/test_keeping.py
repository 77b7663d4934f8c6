"""Tests of dagster_dataops.checkpoints.versions: earlier results that are kept and restored."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import (
    File,
    To,
    config,
    data_register,
    diff,
    load_artefact,
    load_result,
    restore,
    versions,
)
from dagster_dataops.errors import (
    FolderLockedError,
    NewerVersionError,
    RecordError,
    RestoreRefusedError,
    StorageError,
    VersionMissingError,
)
from tests.command_line import main
from tests.nodes import FolderLock, NodeFolder, existing
from tests.pipelines.history.nodes_with_history import numbered, records_of, run, write_records

_KEEPING = "dagster_dataops.checkpoints.versions.folder_versions"
_SINGLE: dict[str, Any] = {"_concurrency_mode": "single", "_stop_after_failures": 0}


@data_register("data.keeping", **_SINGLE)
def sign(record: dict[str, Any], text: str = ".", failing: int = -1) -> Any:
    if record["n"] == failing:
        raise ValueError(text)
    return {**record, "text": text}


@data_register("data.keeping", **_SINGLE)
def after(record: dict[str, Any]) -> Any:
    return {**record, "after": True}


@data_register("data.keeping", outputs=("even", "odd"), **_SINGLE)
def routed(record: dict[str, Any], text: str = ".") -> Any:
    return To("odd" if record["n"] % 2 else "even", {**record, "text": text})


@data_register("data.keeping", **_SINGLE)
def drawn(record: dict[str, Any], text: str = ".") -> Any:
    return {**record, "file": File(f"{record['n']}{text}".encode(), "text/plain")}


_builders: Any = data_register.new_group("keeping_artefacts")


class Words(_builders):
    """Builds a file of the texts."""

    def __init__(self, end: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.end = end

    def build(self, records: Any, folder: Path) -> None:
        (folder / "words").write_text(" ".join(one["text"] for one in records) + self.end)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_records(tmp_path / "in.jsonl", numbered(10))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def folder(root: Path) -> NodeFolder:
    return NodeFolder(root / "docs/signed", "signed")


def _texts(path: Path) -> set[str]:
    return {row["text"] for row in records_of(path)}


def _names(place: Path) -> list[str]:
    return [one.name for one in versions(place)]


def test_a_kept_version_is_the_very_file_and_costs_no_copy(root, source, folder):
    run(root, source, signed=sign(text="a", failing=3, _keep_versions=2))
    before = [folder.result, folder.errors, folder.kept, folder.manifest]
    inodes = {path.name: path.stat().st_ino for path in before}

    run(root, source, signed=sign(text="b", failing=4, _keep_versions=2))

    kept = folder.path / ".history/1"
    assert {path.name: path.stat().st_ino for path in kept.iterdir()}.items() >= inodes.items()
    assert all(path.stat().st_nlink == 1 for path in kept.iterdir())
    assert _texts(kept / folder.result.name) == {"a"}
    assert _texts(folder.result) == {"b"}
    assert load_result(folder.path).state is not None
    assert versions(folder.path)[0].results[""].state is not None  # known as unchanged


def test_versions_beyond_the_number_are_removed_the_oldest_first(root, source, folder):
    for text in "abcde":
        run(root, source, signed=sign(text=text, _keep_versions=2))
    assert _names(folder.path) == ["3", "4", "current"]
    run(root, source, signed=sign(text="f", _keep_versions=1))
    assert _names(folder.path) == ["5", "current"]
    run(root, source, signed=sign(text="g"))  # adds none, and removes none
    assert _names(folder.path) == ["5", "current"]


def test_an_equal_result_makes_no_version(root, source, folder):
    run(root, source, signed=sign(text="a", _keep_versions=2))
    for _ in range(2):
        run(root, source, signed=sign(text="a", _keep_versions=2))
    assert _names(folder.path) == ["current"]


def test_other_failures_or_reasons_make_a_version(root, source, folder):
    run(root, source, signed=sign(text="a", failing=3, _keep_versions=2))
    rows = numbered(10)
    rows[3]["more"] = 1
    write_records(source, rows)
    run(root, source, signed=sign(text="a", failing=3, _keep_versions=2))
    assert _names(folder.path) == ["1", "current"]
    assert '"more"' not in (folder.path / ".history/1/signed_error.jsonl").read_text()


def test_a_result_that_was_edited_is_not_kept(root, source, folder, caplog):
    run(root, source, signed=sign(text="a", _keep_versions=1))
    folder.result.write_text('{"edited":true}\n')
    run(root, source, signed=sign(text="b", _keep_versions=1))
    assert _names(folder.path) == ["current"]


def test_without_hard_links_a_version_is_a_copy(root, source, folder, monkeypatch):
    run(root, source, signed=sign(text="a", _keep_versions=1))
    inode = folder.result.stat().st_ino

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        run(root, source, signed=sign(text="b", _keep_versions=1))

    kept = folder.path / ".history/1/signed_results.jsonl"
    assert kept.stat().st_ino != inode
    assert _texts(kept) == {"a"}
    restore(folder.path, 1)
    assert _texts(folder.result) == {"a"}
    assert load_result(folder.path).rows == 10


def test_a_full_disk_while_copying_leaves_the_result_and_no_version(
    root, source, folder, monkeypatch
):
    run(root, source, signed=sign(text="a", _keep_versions=1))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        patch.setattr(f"{_KEEPING}.copy_durably", full)
        with pytest.raises(StorageError, match="No space left"):
            run(root, source, signed=sign(text="b", _keep_versions=1))

    assert _texts(folder.result) == {"a"}
    assert not list((folder.path / ".history").iterdir())
    run(root, source, signed=sign(text="b", _keep_versions=1))
    assert _names(folder.path) == ["1", "current"]


def test_an_earlier_version_is_published_again_and_the_present_one_is_kept(
    root, source, folder, capsys
):
    for text in "ab":
        node = sign(text=text, failing=5, _keep_versions=1)
        run(root, source, signed=node, next=after())
    first = versions(folder.path)[0].manifest

    assert main(["restore", "docs/signed", "1", "--root", str(root)]) == 0

    said = capsys.readouterr().out
    assert "the result that it replaced is kept as version 2" in said
    assert "next: its result was made from another version; its next run reads this one" in said
    assert _texts(folder.result) == {"a"}
    assert versions(folder.path)[-1].manifest == first
    assert orjson.loads(folder.errors.read_bytes())["message"] == "a"
    assert _names(folder.path) == ["1", "2", "current"]
    assert not list(folder.path.glob(".*.draft"))
    assert diff(folder.path).changed == 9
    assert [str(one) for one in diff(folder.path).causes] == ['option text: "b" became "a"']

    assert "nothing is to be done" in str(restore(folder.path, 2))
    assert main(["trace", str(folder.path), "--line", "1"]) == 0


def test_the_restored_result_counts_as_unchanged_after_its_version_is_removed(root, source, folder):
    for text in "abc":
        run(root, source, signed=sign(text=text, _keep_versions=2))
    restore(folder.path, 1)
    assert load_result(folder.path).state is not None

    assert main(["versions", str(folder.path), "--keep", "1"]) == 0

    assert load_result(folder.path).state is not None
    assert _texts(folder.result) == {"a"}


def test_a_damaged_version_is_not_restored(root, source, folder):
    for text in "ab":
        run(root, source, signed=sign(text=text, _keep_versions=1))
    kept = folder.path / ".history/1/signed_results.jsonl"
    kept.write_bytes(kept.read_bytes().replace(b'"a"', b'"x"', 1))
    with pytest.raises(VersionMissingError, match="it was changed after it was published"):
        restore(folder.path, 1)
    assert _texts(folder.result) == {"b"}
    with pytest.raises(VersionMissingError, match="its versions: 1, and current"):
        restore(folder.path, 7)


def test_a_version_is_not_restored_over_an_unfinished_run(root, source, folder):
    for text in "ab":
        run(root, source, signed=sign(text=text, _keep_versions=1))
    with pytest.raises(Exception, match="c"):
        run(root, source, signed=sign(text="c", failing=8, _ignore_errors=False))
    assert existing(folder.checkpoints)

    with pytest.raises(RestoreRefusedError, match="is not finished, and its 8 records"):
        restore(folder.path, 1)
    assert existing(folder.checkpoints)


def _newer(path: Path) -> None:
    """Let a file be of a newer version; other names of the file keep the present one."""
    data = path.read_bytes()
    assert b"6-little" in data
    path.unlink()
    path.write_bytes(data.replace(b"6-little", b"7-little"))


def _contents(place: Path) -> dict[Path, bytes]:
    files = [path for path in place.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path: path.read_bytes() for path in files}


_HERE = "signed_results.jsonl.json"


@pytest.mark.parametrize(
    "newer", [f".history/1/{_HERE}", f".history/2/{_HERE}", _HERE, f".{_HERE}.draft", "checkpoints"]
)
def test_nothing_is_removed_or_replaced_where_a_newer_version_has_written(
    root, source, folder, newer, capsys
):
    for text in "abc":
        run(root, source, signed=sign(text=text, _keep_versions=3))
    if newer == "checkpoints":
        with _later_format(), pytest.raises(RecordError):
            run(root, source, signed=sign(text="d", failing=8, _ignore_errors=False))
    else:
        draft = folder.path / newer
        draft.write_bytes(draft.read_bytes() if draft.exists() else folder.manifest.read_bytes())
        _newer(draft)
    before = _contents(root)

    for keep in "012":
        assert main(["versions", str(folder.path), "--keep", keep]) == 1
        assert f"{folder.path / newer}" in (told := capsys.readouterr().err)
        assert "has format 7-little, of a newer version" in told
    for number in (1, 2):
        with pytest.raises(NewerVersionError):
            restore(folder.path, number)
    with pytest.raises(NewerVersionError):
        run(root, source, signed=sign(text="e", _keep_versions=1))
    with pytest.raises(NewerVersionError):
        run(root, source, signed=sign(text="e"))
    assert main(["prune-files", str(root), "--days", "0", "--yes"]) == 1
    assert _contents(root) == before


@contextmanager
def _later_format() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dagster_dataops.checkpoints.folder.run_fingerprint.FORMAT", "7-little")
        yield


@pytest.mark.slow
def test_a_run_and_a_restoration_do_not_work_at_once(root, source, folder):
    for text in "ab":
        run(root, source, signed=sign(text=text, _keep_versions=1))
    lock = FolderLock(folder.path, "other", 0)
    try:
        with pytest.raises(FolderLockedError, match="run other"):
            restore(folder.path, 1)
    finally:
        lock.release()


def test_all_named_results_are_kept_and_restored_together(root, source):
    for text in "ab":
        run(root, source, split=routed(text=text, _keep_versions=1))
    place = root / "docs/split"

    restore(place, 1)

    found = [_texts(place / name / f"{name}_results.jsonl") for name in ("even", "odd")]
    assert found == [{"a"}, {"a"}]
    assert load_result(place / "odd").rows == 5
    assert _names(place / "odd") == ["1", "2", "current"]


def test_the_files_of_a_kept_artefact_stay(root, source):
    for end in ("!", "?", "."):
        run(root, source, words=Words(end=end, _keep_versions=1))
    place = root / "docs/words"
    texts = [
        (place / "words_artefact" / one.manifest.artefact / "words").read_text()[-1]
        for one in versions(place)
    ]
    assert texts == ["?", "."]
    assert (
        len(
            [
                one
                for one in (place / "words_artefact").iterdir()
                if one.is_dir() and not one.name.startswith(".")
            ]
        )
        <= 3
    )

    restore(place, 2)

    assert (load_artefact(place).path / "words").read_text()[-1] == "?"
    assert diff(place).results[""].by_content == "an artefact is built from all records at once"


def test_files_that_a_kept_version_names_are_in_use(root, source, capsys):
    with config.temporary(data_process_path=root):
        for text in "ab":
            run(root, source, drawn=drawn(text=text, _keep_versions=1))
        assert main(["prune-files", str(root), "--days", "0", "--yes"]) == 0
        assert "0 files older" in capsys.readouterr().out
        assert main(["versions", str(root / "docs/drawn"), "--keep", "0"]) == 0
        capsys.readouterr()
        assert main(["prune-files", str(root), "--days", "0", "--yes"]) == 0
        assert "10 files older" in capsys.readouterr().out
    assert load_result(root / "docs/drawn").rows == 10
