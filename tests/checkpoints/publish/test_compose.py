"""Results made of settled spans that may be damaged."""

import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.checkpoints.publish import cleanup
from dagster_dataops.checkpoints.publish.cleanup import delete_removed, remove_checkpoints
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.funnel import funnel
from dagster_dataops.errors import StorageError
from dagster_dataops.execution.runners import record_runner
from dagster_dataops.operators.outcomes.dispositions import disposition
from tests.execution.helpers import (
    MODES,
    SMALL,
    cut_by,
    error_rows,
    expected_failures,
    expected_results,
    node,
    operator_for,
    plan,
    run,
    write_input,
)
from tests.journals import SpanTable
from tests.nodes import CheckpointContent, JsonlWriter, background, deleting

_RECORDS = plan(random.Random(2).choices(["keep", "expand", "drop", "fail", "replace"], k=60))


class EnoughError(Exception):
    """Stops a run before it publishes."""


def _settled_but_unpublished(
    tmp_path: Path, patch: pytest.MonkeyPatch, mode: str, dataset: object
) -> Path:
    from dagster_dataops.execution.runners import record_runner

    def refuse(*_: object, **named: object) -> None:
        raise EnoughError

    with patch.context() as inner, pytest.raises(EnoughError):
        cut_by(inner, SMALL)
        inner.setattr(record_runner, "compose", refuse)
        run(operator_for(mode, 2), dataset, node(tmp_path))
    return node(tmp_path).checkpoints / "1"


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", MODES)
def test_flipped_bits_in_journal_and_segments_never_reach_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, seed: int
) -> None:
    from tests.nodes import ResumePolicy

    chance = random.Random(f"{mode}{seed}")
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    checkpoint = _settled_but_unpublished(tmp_path, monkeypatch, mode, dataset)
    files = [path for path in checkpoint.iterdir() if path.stat().st_size]
    for path in chance.sample(files, chance.randrange(1, len(files) + 1)):
        _flip(path, chance)
    run(operator_for(mode, 2), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert node(tmp_path).result.read_bytes() == expected_results(_RECORDS)
    assert [row["index"] for row in error_rows(node(tmp_path))] == expected_failures(_RECORDS)


@pytest.mark.parametrize("damage", ["cut", "removed"])
@pytest.mark.parametrize("mode", MODES)
def test_lost_segments_are_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, damage: str
) -> None:
    from tests.nodes import ResumePolicy

    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    checkpoint = _settled_but_unpublished(tmp_path, monkeypatch, mode, dataset)
    segment = max(checkpoint.glob("segment-*"), key=lambda path: path.stat().st_size)
    if damage == "cut":
        segment.write_bytes(segment.read_bytes()[: segment.stat().st_size // 2])
    else:
        segment.unlink()
    report = run(operator_for(mode, 2), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert any("damaged on disk; doing them again" in note for note in report.notes)
    assert node(tmp_path).result.read_bytes() == expected_results(_RECORDS)


def test_spans_done_again_replace_the_damaged_ones_after_another_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster_dataops.checkpoints.publish.compose import compose
    from dagster_dataops.execution.runners import record_runner
    from tests.nodes import ResumePolicy

    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    checkpoint = _settled_but_unpublished(tmp_path, monkeypatch, "single", dataset)
    _flip(checkpoint / "segment-00001.jsonl", random.Random(1))
    composed: list[object] = []

    def second_time_lucky(*given: object, **named: object) -> object:
        composed.append(given)
        if len(composed) == 2:
            raise EnoughError
        return compose(*given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(EnoughError):
        patch.setattr(record_runner, "compose", second_time_lucky)
        run(operator_for("single", 1), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    content = CheckpointContent.read(checkpoint)
    assert content.table.records == len(_RECORDS)
    report = run(operator_for("single", 1), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == len(_RECORDS)
    assert not any("damaged" in note for note in report.notes)
    assert node(tmp_path).result.read_bytes() == expected_results(_RECORDS)


def _composed_after(
    tmp_path: Path, patch: pytest.MonkeyPatch, action: Callable[[Path], None], runs: list[str]
) -> list[Path]:
    """Run records in one thread; return the files that were linked to the draft of the result.

    ``action`` gets the checkpoint before its result is composed for the first time.
    """
    records = plan(runs)
    dataset = write_input(tmp_path / "input.jsonl", records)
    linked: list[Path] = []
    link, todo = JsonlWriter.link, [action]

    def acted(*given: Any, **named: Any) -> object:
        if todo:
            todo.pop()(node(tmp_path).checkpoints / "1")
        return compose(*given, **named)

    def noted(self: JsonlWriter, source: Path) -> None:
        linked.append(source)
        link(self, source)

    patch.setattr(record_runner, "compose", acted)
    patch.setattr(JsonlWriter, "link", noted)
    run(operator_for("single", 1), dataset, node(tmp_path))
    assert node(tmp_path).result.read_bytes() == expected_results(records)
    assert [row["index"] for row in error_rows(node(tmp_path))] == expected_failures(records)
    return linked


@pytest.mark.parametrize("kinds", [["keep"], ["keep", "expand", "drop"]])
def test_a_segment_that_holds_the_whole_result_becomes_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: list[str]
) -> None:
    linked = _composed_after(tmp_path, monkeypatch, lambda _: None, kinds * 20)
    assert [path.name for path in linked] == ["segment-00001.jsonl"]
    assert node(tmp_path).result.stat().st_nlink == 1


def test_a_segment_with_error_lines_does_not_become_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not _composed_after(tmp_path, monkeypatch, lambda _: None, ["keep", "fail"] * 20)


@pytest.mark.parametrize("damage", ["flipped", "longer", "removed"])
def test_a_damaged_segment_does_not_become_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    def hurt(checkpoint: Path) -> None:
        segment = checkpoint / "segment-00001.jsonl"
        if damage == "flipped":
            _flip(segment, random.Random(1))
        elif damage == "longer":
            segment.write_bytes(segment.read_bytes() + b"{}\n")
        else:
            segment.unlink()

    linked = _composed_after(tmp_path, monkeypatch, hurt, ["keep"] * 20)
    assert [path.name for path in linked[-1:]] != ["segment-00001.jsonl"]


def table(records: int, failed: int = 0, **counts: Any) -> SpanTable:
    made = SpanTable()
    made.records, made.failed = records, failed
    made.counts = {f".seconds {name[1:]}": number for name, number in counts.items()}
    return made


def rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:5] for row in found]


def test_usual_records_enter_and_leave_every_part() -> None:
    found = funnel(["a", "b"], table(7, p0=0.5, p1=1.2345), Counter())
    assert rows(found) == [(7, 7, 0, 0)] * 2
    assert [(row["name"], row["seconds"]) for row in found] == [("a", 0.5), ("b", 1.234)]


def test_dropped_split_and_failed_records_count_where_it_happened() -> None:
    unusual = Counter(
        {
            disposition(emitted=0, dropped=["b: short"], entered=[1, 1]): 3,
            disposition(emitted=4, dropped={"b: short": 2}, entered=[1, 6, 4]): 1,
            disposition(failed=2): 2,
        }
    )
    found = funnel(["a", "b", "c"], table(10, failed=2), unusual)
    # 4 usual, 3 dropped in b, 1 made 6 of which b dropped 2, 2 failed in c
    assert rows(found) == [(10, 15, 0, 0), (15, 10, 5, 0), (10, 8, 0, 2)]


def test_records_that_failed_outside_the_parts_are_in_none() -> None:
    found = funnel(["a"], table(10, failed=3), Counter({disposition(failed=0): 1}))
    assert rows(found) == [(8, 7, 0, 1)]


def _with_checkpoints(path: Path, count: int = 2) -> None:
    for number in range(1, count + 1):
        folder = node(path).checkpoints / str(number)
        folder.mkdir(parents=True)
        (folder / "journal").write_bytes(b"x" * 100)


def _entries(path: Path) -> list[str]:
    return sorted(entry.name for entry in node(path).path.iterdir())


def test_checkpoints_are_moved_at_once_and_deleted_in_the_background(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    remove_checkpoints(node(tmp_path))
    assert _entries(tmp_path) == [".removed"]
    assert (node(tmp_path).path / ".removed" / "0" / "2" / "journal").exists()
    delete_removed(node(tmp_path))
    deleting.finish()
    assert _entries(tmp_path) == []


def test_a_node_without_checkpoints_stays_as_it_is(tmp_path: Path) -> None:
    node(tmp_path).path.mkdir()
    remove_checkpoints(node(tmp_path))
    delete_removed(node(tmp_path))
    deleting.finish()
    assert _entries(tmp_path) == []


def test_a_checkpoint_file_linked_to_the_result_is_unlinked_at_once(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    node(tmp_path).result.write_bytes(b"{}\n")
    (node(tmp_path).checkpoints / "1" / "segment").hardlink_to(node(tmp_path).result)
    remove_checkpoints(node(tmp_path))
    assert node(tmp_path).result.stat().st_nlink == 1


def test_checkpoints_that_a_killed_run_moved_are_deleted_by_the_next(tmp_path: Path) -> None:
    for _ in range(3):
        _with_checkpoints(tmp_path)
        remove_checkpoints(node(tmp_path))
    removed = node(tmp_path).path / ".removed"
    assert sorted(entry.name for entry in removed.iterdir()) == ["0", "1", "2"]
    delete_removed(node(tmp_path))
    deleting.finish()
    assert _entries(tmp_path) == []


def test_a_folder_deleted_meanwhile_by_an_earlier_run_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletion continues after a run has released its lock: the next run may be at this point."""
    _with_checkpoints(tmp_path)
    times = iter(range(10))

    def made_and_taken_away(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        if next(times) < 3:
            shutil.rmtree(folder)

    monkeypatch.setattr(cleanup, "make_folder", made_and_taken_away)
    remove_checkpoints(node(tmp_path))
    assert _entries(tmp_path) == [".removed"]
    assert next(times) == 4


def test_checkpoints_that_cannot_be_removed_are_an_error_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_checkpoints(tmp_path)

    def refuse(*given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError, match=r"checkpoints.*remove the checkpoints.*denied"):
        remove_checkpoints(node(tmp_path))


def test_a_sync_does_not_wait_for_a_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(shutil, "rmtree", lambda *given, **named: release.wait(30))
    _with_checkpoints(tmp_path)
    remove_checkpoints(node(tmp_path))
    delete_removed(node(tmp_path))
    background.finish()
    assert deleting.native_id is not None
    release.set()
    deleting.finish()
