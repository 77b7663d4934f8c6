"""Results made of settled spans that may be damaged."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.execution.runners import record_runner
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
from tests.nodes import CheckpointContent, JsonlWriter

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
