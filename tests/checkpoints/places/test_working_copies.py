"""Tests of the deletion of working copies that are not used."""

import os
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, config, load_result
from dagster_dataops.checkpoints.places import working_copies
from dagster_dataops.checkpoints.places.working_copies import clean
from tests.command_line import main
from tests.execution.helpers import act, node, plan, run, write_input
from tests.nodes import NodeFolder
from tests.object_stores import FakeStore, machine
from tests.parted_results import store_in_parts

_RECORDS = plan(["keep", "fail", "drop", "expand"] * 5)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def folder(tmp_path: Path, scratch: Path, store: FakeStore) -> NodeFolder:
    """Return the folder of a node with a published result on the store."""
    root = machine(scratch, store)
    made = node(root / "docs" / "node")
    run(act(), write_input(tmp_path / "input.jsonl", _RECORDS), made)
    store_in_parts(made, 7)
    return made


def _age(scratch: Path) -> None:
    for path in scratch.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)


def _left(scratch: Path) -> list[str]:
    found = sorted(path.name for path in scratch.rglob("*") if path.is_symlink() or path.is_file())
    return [name for name in found if name != ".lock" and not name.endswith("_home.lock")]


def test_an_old_copy_is_deleted_and_comes_back_with_the_same_bytes(scratch, store, folder):
    records, rows = load_result(folder).read(), folder.errors.read_bytes()
    _age(scratch)

    found = clean(scratch, days=1)

    assert not _left(scratch)
    assert found.files > 5
    assert found.size_bytes > len(rows)
    assert load_result(folder).read() == records
    assert folder.errors.read_bytes() == rows


def test_a_copy_that_was_used_or_claimed_stays(scratch, folder):
    before = _left(scratch)
    _age(scratch)
    load_result(folder)

    assert clean(scratch, days=1) == (0, 0, 0)
    _age(scratch)
    claim = folder.place.claim("run", 1.0)
    _age(scratch)
    try:
        assert clean(scratch, days=1) == (0, 0, 1)
    finally:
        claim.release()
    assert set(before) <= set(_left(scratch))


@pytest.mark.parametrize("after", range(8))
def test_a_deletion_that_was_killed_leaves_a_copy_that_is_repaired(
    scratch, folder, monkeypatch, after
):
    records, rows = load_result(folder).read(), folder.errors.read_bytes()
    _age(scratch)
    calls = iter(range(after))
    delete = working_copies._delete

    def killed(path: Path, deleted: list[int]) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        delete(path, deleted)

    monkeypatch.setattr(working_copies, "_delete", killed)
    with pytest.raises(KeyboardInterrupt):
        clean(scratch, days=1)
    monkeypatch.undo()

    assert load_result(folder).read() == records
    assert folder.errors.read_bytes() == rows
    _age(scratch)
    clean(scratch, days=1)
    assert not _left(scratch)


def test_other_files_and_local_results_stay(tmp_path, scratch, folder):
    nested = node(folder.path / "below")
    run(act(), write_input(tmp_path / "input.jsonl", _RECORDS), node(scratch / "local"))
    nested.path.mkdir(parents=True)
    (nested.path / ".lock").touch()  # a run begins
    (nested.path / "draft").touch()
    (scratch / "notes.txt").write_text("mine")
    _age(scratch)

    clean(scratch, days=1)

    assert load_result(node(scratch / "local").result).read()
    assert {"notes.txt", "draft"} <= set(_left(scratch))


def test_an_old_copy_of_an_input_is_deleted_and_fetched_again(scratch, store, capsys):
    machine(scratch, store)
    store.put("in/docs.jsonl", b'{"n":1}\n')
    with config.temporary(data_process_scratch=scratch):
        read = JsonlDataset.of_file("memory://bucket/in/docs.jsonl").read
        _age(scratch)
        assert JsonlDataset.of_file("memory://bucket/in/docs.jsonl").read() == read()
        assert clean(scratch, days=1).files == 0
        _age(scratch)
        assert main(["clean", "--days", "1"]) == 0
        assert not _left(scratch)
        assert JsonlDataset.of_file("memory://bucket/in/docs.jsonl").read() == [{"n": 1}]
    assert f"{scratch}: 2 files of " in capsys.readouterr().out
