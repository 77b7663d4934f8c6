import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import JsonlDataset, Operator, load_result
from dagster_dataops.errors import StorageError
from tests.execution.helpers import (
    act,
    error_rows,
    expected_failures,
    expected_results,
    node,
    plan,
    run,
    turn_around,
    write_input,
)
from tests.faults.crashing import DyingAfter, in_child
from tests.nodes import (
    CheckpointContent,
    JsonlWriter,
    NodeFolder,
    ResumePolicy,
    background,
    commit,
    deleting,
    draft_of,
    published,
)

_OLD = plan(["keep", "fail", "expand", "keep"])
_NEW = plan(["expand", "drop", "replace", "fail", "fail", "keep", "expand"])
_SOUND_ROWS = plan(["keep", "keep", "keep"])


def _dying(patch: pytest.MonkeyPatch, owner: Any, name: str, calls: int, *, before: bool) -> None:
    patch.setattr(owner, name, DyingAfter(getattr(owner, name), calls, before=before))


def _dying_in_deletion(patch: pytest.MonkeyPatch, files: int) -> None:
    rmtree = shutil.rmtree

    def delete(*args: Any, **kwargs: Any) -> None:
        _dying(patch, os, "unlink", files, before=False)
        rmtree(*args, **kwargs)

    patch.setattr(shutil, "rmtree", delete)


# Every step of publishing: (class or module, function, call, whether just before it).
_STEPS: dict[str, tuple[Any, str, int, bool]] = {
    "before the result's draft is finished": (JsonlWriter, "finish", 1, True),
    "after the result's draft": (JsonlWriter, "finish", 1, False),
    "after the error file's draft": (JsonlWriter, "finish", 2, False),
    "before the manifest's draft": (commit, "write_draft", 1, True),
    "after the manifest's draft": (commit, "write_draft", 1, False),
    "before the renames": (commit, "_finish", 1, True),
    "before the folder is synced": (commit, "sync_folder", 1, True),
    "before the checkpoints are removed": (commit, "remove_checkpoints", 1, True),
    "after the checkpoints are removed": (commit, "remove_checkpoints", 1, False),
    "before anything is deleted": (commit, "delete_removed", 2, True),
    "after everything is done": (commit, "_finish", 1, False),
}
# Path.replace: the four files are put in place.
_RENAMES = {f"after rename {number}": (Path, "replace", number, False) for number in range(1, 5)}
_DELETIONS = {
    "after the first removed file is deleted": 1,
    "after the second removed file is deleted": 2,
}


def _start(tmp_path: Path) -> NodeFolder:
    folder = node(tmp_path)
    run(act(_concurrency_mode="single"), write_input(tmp_path / "old.jsonl", _OLD), folder)
    assert folder.result.read_bytes() == expected_results(_OLD)
    deleting.finish()  # else this process may delete the files that a child is to delete
    return folder


def _killed(step: str, operator: Operator, dataset: JsonlDataset, folder: NodeFolder) -> None:
    """Run an operator in a process that dies at a step of publishing."""

    def publish() -> None:
        patch = pytest.MonkeyPatch()
        if step in _DELETIONS:
            _dying_in_deletion(patch, _DELETIONS[step])
        else:
            owner, name, calls, before = (_STEPS | _RENAMES)[step]
            _dying(patch, owner, name, calls, before=before)
        run(operator, dataset, folder, run="killed")
        deleting.finish()  # deaths while files are deleted

    assert in_child(publish) == DyingAfter.STATUS


def _check_whole(folder: NodeFolder) -> None:
    """Check that the result is completely the old one or the new one, and readable."""
    assert folder.result.read_bytes() in {expected_results(_OLD), expected_results(_NEW)}
    assert load_result(folder).path.read_bytes() == folder.result.read_bytes()


def _check_new(folder: NodeFolder) -> None:
    assert folder.result.read_bytes() == expected_results(_NEW)
    found = published(folder)
    assert found
    assert found[1].rows_in == len(_NEW)
    assert [row["index"] for row in error_rows(folder)] == expected_failures(_NEW)
    assert CheckpointContent.read(folder.path, folder.kept.name).result == found[1].fingerprint
    assert not folder.checkpoints.exists()
    assert not list(folder.path.glob(".*.draft"))
    background.finish()
    deleting.finish()
    assert not (folder.path / ".removed").exists()


@pytest.mark.parametrize("step", [*_STEPS, *_RENAMES, *_DELETIONS])
@pytest.mark.parametrize("policy", [ResumePolicy.AUTO, ResumePolicy.NEVER], ids=["auto", "never"])
def test_a_death_while_publishing_leaves_the_old_result_or_the_new_one(
    tmp_path: Path, step: str, policy: ResumePolicy
) -> None:
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)
    operator = act(_concurrency_mode="single")
    _killed(step, operator, dataset, folder)
    _check_whole(folder)
    run(operator, dataset, folder, run="next", resume=policy, earlier_runs=frozenset({"killed"}))
    _check_new(folder)


# Without failures, two files fewer are renamed: the error file and the kept journal. The segment
# becomes the result, so that only the journal is deleted.
_SOUND = {**_STEPS, **dict(list(_RENAMES.items())[:2])}
del _SOUND["after the error file's draft"]


@pytest.mark.parametrize("step", [*_SOUND, next(iter(_DELETIONS))])
def test_a_death_while_publishing_leaves_no_error_file_of_an_older_result(
    tmp_path: Path, step: str
) -> None:
    folder = _start(tmp_path)
    assert error_rows(folder)
    dataset = write_input(tmp_path / "sound.jsonl", _SOUND_ROWS)
    _killed(step, act(_concurrency_mode="single"), dataset, folder)
    assert folder.result.read_bytes() in {expected_results(_OLD), expected_results(_SOUND_ROWS)}
    run(act(_concurrency_mode="single"), dataset, folder, run="next")
    assert folder.result.read_bytes() == expected_results(_SOUND_ROWS)
    assert not folder.errors.exists()
    assert not folder.kept.exists()
    assert not list(folder.path.glob(".*.draft"))


@pytest.mark.parametrize("step", _SOUND)
def test_a_dataset_operator_killed_while_publishing_leaves_a_whole_result(
    tmp_path: Path, step: str
) -> None:
    folder = node(tmp_path)
    dataset = write_input(tmp_path / "input.jsonl", _OLD)
    run(turn_around(), dataset, folder)
    old = folder.result.read_bytes()
    longer = write_input(tmp_path / "longer.jsonl", _OLD * 2)
    _killed(step, turn_around(), longer, folder)
    assert folder.result.read_bytes().count(b"\n") in {4, 8}
    assert old.startswith(folder.result.read_bytes()) or folder.result.stat().st_size > len(old)
    assert load_result(folder).read()
    run(turn_around(), longer, folder)
    assert folder.result.read_bytes().count(b"\n") == 8
    assert not folder.checkpoints.exists()


def test_a_manifests_draft_without_its_result_does_not_cost_the_checkpoint(tmp_path: Path) -> None:
    """A power loss may keep the name of a later file and lose that of an earlier one."""
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)
    _killed("before the renames", act(_concurrency_mode="single"), dataset, folder)
    draft_of(folder.result).unlink()
    report = run(act(), dataset, folder, run="next", resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == len(_NEW)
    assert report.notes == (f"resuming: {len(_NEW)} records settled by run killed",)
    _check_new(folder)


def test_an_unreadable_draft_of_a_manifest_is_not_treated_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)
    _killed("before the renames", act(_concurrency_mode="single"), dataset, folder)
    real = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == draft_of(folder.manifest):
            raise OSError(errno.EIO, "Input/output error")
        return real(path)

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="finish publishing"):
        patch.setattr(Path, "read_bytes", refuse)
        run(act(), dataset, folder)
    report = run(act(), dataset, folder, run="next", earlier_runs=frozenset({"killed"}))
    assert report.reused
    _check_new(folder)


@pytest.mark.parametrize("kind", ["record", "dataset"])
def test_a_result_published_again_with_the_same_bytes_keeps_its_files(
    tmp_path: Path, kind: str
) -> None:
    """Readers on other machines lose a file that is replaced, and stamps stay as they were."""
    folder = node(tmp_path)
    dataset = write_input(tmp_path / "input.jsonl", _OLD)
    operator = act(_concurrency_mode="single") if kind == "record" else turn_around()
    first = run(operator, dataset, folder, run="first")
    files = [path for path in (folder.result, folder.errors) if path.exists()]
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in files]
    again = run(operator, dataset, folder, run="again", resume=ResumePolicy.NEVER)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in files] == before
    assert again.manifest.run == "again"
    assert again.dataset == first.dataset
    assert published(folder) == (again.dataset, again.manifest)
    assert not list(folder.path.glob(".*.draft"))
    assert not folder.checkpoints.exists()


def test_a_result_damaged_without_a_new_time_is_replaced(tmp_path: Path) -> None:
    folder = _start(tmp_path)
    status = folder.result.stat()
    folder.result.write_bytes(folder.result.read_bytes().replace(b"0", b"1"))
    os.utime(folder.result, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert published(folder)
    _start(tmp_path)


_AGAIN = [
    "after the error file's draft",
    "before the manifest's draft",
    "after the manifest's draft",
    "before the checkpoints are removed",
    "before the folder is synced",
    "after everything is done",
]


@pytest.mark.parametrize("step", _AGAIN)
def test_a_death_while_publishing_the_same_bytes_again_leaves_the_result(
    tmp_path: Path, step: str
) -> None:
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "old.jsonl", _OLD)
    operator = act(_concurrency_mode="single")
    inode = folder.result.stat().st_ino
    _killed(step, operator, dataset, folder)
    assert published(folder)
    report = run(operator, dataset, folder, run="next", resume=ResumePolicy.AUTO)
    found = published(folder)
    assert found
    assert found[0] == report.dataset
    assert folder.result.stat().st_ino == inode
    assert folder.result.read_bytes() == expected_results(_OLD)
    assert [row["index"] for row in error_rows(folder)] == expected_failures(_OLD)
    assert not list(folder.path.glob(".*.draft"))


def test_an_interrupted_publication_is_finished_by_the_next_run(tmp_path: Path) -> None:
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)
    _killed("before the renames", act(_concurrency_mode="single"), dataset, folder)
    report = run(act(), dataset, folder, run="next", earlier_runs=frozenset({"killed"}))
    assert report.reused
    assert report.manifest.run == "killed"
    assert report.notes[0].startswith("finished publishing the result of run killed")
    _check_new(folder)


def test_readers_never_see_half_a_result(tmp_path: Path) -> None:
    """Read at every single step of publishing."""
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)
    seen: list[bytes] = []

    def watching(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            _check_whole(folder)
            returned = function(*args, **kwargs)
            _check_whole(folder)
            seen.append(load_result(folder).path.read_bytes())
            return returned

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", watching(Path.replace))
        for owner, name, _, _ in _STEPS.values():
            if owner is commit and name != "_finish":
                patch.setattr(owner, name, watching(getattr(owner, name)))
        run(act(_concurrency_mode="single"), dataset, folder)
    assert expected_results(_OLD) in seen
    assert expected_results(_NEW) in seen


def test_a_result_without_failures_leaves_no_error_file(tmp_path: Path) -> None:
    folder = _start(tmp_path)
    assert folder.errors.exists()
    assert folder.kept.exists()
    run(act(_concurrency_mode="single"), write_input(tmp_path / "x", plan(["keep"])), folder)
    assert not folder.errors.exists()
    assert not folder.kept.exists()


def test_a_disk_that_fills_up_while_composing_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _start(tmp_path)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(JsonlWriter, "finish", full)
        run(act(_concurrency_mode="single"), dataset, folder, run="first")
    assert folder.result.read_bytes() == expected_results(_OLD)
    report = run(act(_concurrency_mode="single"), dataset, folder, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == len(_NEW)
    _check_new(folder)


def test_drafts_of_a_dead_run_are_never_taken_for_finished_ones(tmp_path: Path) -> None:
    folder = _start(tmp_path)
    draft_of(folder.result).write_bytes(b'{"half":')
    draft_of(folder.errors).write_bytes(b'{"half":')
    draft_of(folder.manifest).write_bytes(b"{")
    _check_whole(folder)
    run(act(_concurrency_mode="single"), write_input(tmp_path / "new.jsonl", _NEW), folder)
    _check_new(folder)


def test_the_draft_of_a_kept_journal_is_deleted_with_an_unfinished_publication(
    tmp_path: Path,
) -> None:
    folder = node(tmp_path)
    run(act(), write_input(tmp_path / "input.jsonl", _OLD), folder)
    draft_of(folder.kept).write_bytes(b"of a run that was killed while it composed")
    assert commit.finish_interrupted(folder) is None
    assert not draft_of(folder.kept).exists()
    assert folder.kept.exists()


def test_a_draft_in_another_form_is_deleted_by_the_next_run(tmp_path: Path) -> None:
    folder = node(tmp_path)
    dataset = write_input(tmp_path / "input.jsonl", _OLD)
    run(act(), dataset, folder)
    (compressed,) = folder.other_forms
    draft_of(compressed).write_bytes(b"of a run that was killed when it had published the result")
    assert run(act(), dataset, folder).reused
    assert not draft_of(compressed).exists()
    assert folder.result.read_bytes() == expected_results(_OLD)
