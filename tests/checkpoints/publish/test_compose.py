"""Results made of settled spans that may be damaged."""

import random
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.checkpoint import (
    CheckpointContent,
)
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
    from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy

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
    from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy

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
    from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
    from dagster_dataops.execution.runners import record_runner

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
