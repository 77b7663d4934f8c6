"""Tests of the deletion of files that no result names."""

import os
import shutil
import time
from hashlib import sha256

import pytest

from dagster_dataops import File, config, data_register, pipeline
from tests.command_line import main
from tests.nodes import FolderLock


@data_register("data.unnamed_files", _concurrency_mode="single")
def draw(record):
    record["image"] = File(f"image {record['n']}".encode())
    if record["n"] == 9:
        raise KeyboardInterrupt
    return record


@data_register("data.unnamed_files", _concurrency_mode="single")
def copied(record):
    return {"copy": [record["image"]]}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    with config.temporary(data_process_path=root):
        made([{"n": n} for n in range(4)])
        yield root


def made(records):
    with pipeline("p") as ppl:
        ppl.draw = draw()
        ppl.copied = copied()
    return ppl(records)


def stored(root):
    return sorted(
        path.parent.name + path.name
        for path in (root / "files").glob("[0-9a-f][0-9a-f]/*")
        if not path.name.startswith(".")
    )


def digest(number):
    return sha256(f"image {number}".encode()).hexdigest()


def age(root, days=30.0):
    then = time.time() - days * 86_400
    for path in (root / "files").rglob("*"):
        os.utime(path, (then, then))


def test_only_old_files_that_no_result_names_are_deleted(root, capsys):
    age(root)
    shutil.rmtree(root / "p" / "draw")
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert capsys.readouterr().out.startswith("0 files older than 7 days")
    assert len(stored(root)) == 4
    shutil.rmtree(root / "p")
    for arguments, left in (([], 4), (["--days", "60", "--yes"], 4), (["--yes"], 0)):
        assert main(["prune-files", str(root), *arguments]) == 0
        assert len(stored(root)) == left
    assert "4 files older than 7 days" in capsys.readouterr().out


def test_files_of_an_unfinished_run_and_of_other_roots_are_kept(root, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        made([{"n": n} for n in range(5, 10)])
    age(root)
    shutil.rmtree(root / "p" / "copied")
    for path in (root / "p" / "draw").glob("draw_*"):
        path.unlink()
    (tmp_path / "other.jsonl").write_text(f'{{"x":"files/{digest(0)[:2]}/{digest(0)[2:]}"}}')
    assert main(["prune-files", str(root), "--also", str(tmp_path / "other.jsonl"), "--yes"]) == 0
    assert stored(root) == sorted(map(digest, (0, 5, 6, 7, 8)))


def test_a_file_that_is_made_again_counts_as_new(root):
    shutil.rmtree(root / "p")
    age(root)
    made([{"n": 1}])
    shutil.rmtree(root / "p")
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert stored(root) == [digest(1)]


def test_drafts_that_a_kill_left_are_deleted_after_the_grace_period(root):
    draft = root / "files" / digest(0)[:2] / f".{digest(0)[2:]}.0011223344556677.draft"
    draft.write_bytes(b"half")
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert draft.exists()
    age(root)
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert not draft.exists()
    assert len(stored(root)) == 4


def test_nothing_is_deleted_while_a_run_works_below_the_root(root, capsys):
    shutil.rmtree(root / "p")
    age(root)
    lock = FolderLock(root / "p" / "draw", "run", 0.0)
    try:
        assert main(["prune-files", str(root), "--yes"]) == 1
    finally:
        lock.release()
    assert "in use by a run" in capsys.readouterr().err
    assert len(stored(root)) == 4


def test_a_node_may_have_the_name_of_the_folder(tmp_path):
    with config.temporary(data_process_path=tmp_path):
        with pipeline("") as ppl:
            ppl.files = draw()
        first, second = ppl([{"n": 1}]), ppl([{"n": 1}])
    assert first == second
    age(tmp_path)
    assert main(["prune-files", str(tmp_path), "--yes"]) == 0
    assert digest(1) in stored(tmp_path)


def test_a_wrong_root_and_a_wrong_period_are_refused(root, capsys):
    assert main(["prune-files", str(root / "none")]) == 1
    assert main(["prune-files", str(root), "--days", "-1"]) == 1
    assert "a number of days" in capsys.readouterr().err
