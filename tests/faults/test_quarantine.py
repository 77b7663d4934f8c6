"""Tests of failed items of streams: any content, and any damage of the quarantine file."""

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import DataPipeline, RunReport, read_sequence
from dagster_dataops.errors import StorageError
from tests.execution.helpers import error_rows, lines, node
from tests.faults.cases import cases
from tests.journals import Position, read_positions
from tests.nodes import OperatorExecutor, ResumePolicy, RunContext, given_stream

_COUNT: Final = 12
_FAILING: Final = (2, 4, 5, 9)
_ROWS: Final = [{"n": n} for n in range(_COUNT)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("dagster_dataops")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def _write(folder: Path, stream: DataPipeline, run: str) -> RunReport:
    context = RunContext(run=run, resume=ResumePolicy.AUTO, flush_seconds=0.0)
    executor = OperatorExecutor(context)
    return executor.run(given_stream("kept", lambda: stream), [], node(folder))


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {"n": 1}
    circle["circle"] = circle
    return circle


def _deep(levels: int) -> dict[str, Any]:
    deep: dict[str, Any] = {"n": 1}
    for _ in range(levels):
        deep = {"deep": deep}
    return deep


class _MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


_ODD: Final[dict[str, Callable[[], Any]]] = {
    "nan": lambda: {"x": math.nan},
    "infinity": lambda: {"x": [math.inf, -math.inf]},
    "lone surrogate": lambda: {"x": "a\ud800", "\udfff": 1},
    "large integer": lambda: {"x": 2**70},
    "huge integer": lambda: {"x": 10**5000},
    "tuple as a key": lambda: {(1, 2): 3, None: 4},
    "bytes": lambda: {"x": b"\xff"},
    "set": lambda: {"x": {1}},
    "250 levels": lambda: _deep(250),
    "2,000 levels": lambda: _deep(2000),
    "100,000 levels": lambda: _deep(100_000),
    "circle": _circle,
    "no dict": object,
}


def _refuse(item: Any) -> Any:
    if isinstance(item, dict) and item.get("n") in {0, 2}:
        return item
    raise ValueError("refused")


def _refuse_mutely(item: Any) -> Any:
    if isinstance(item, dict) and item.get("n") == 0:
        return item
    raise _MuteError


@pytest.mark.parametrize("refuse", [_refuse, _refuse_mutely], ids=["a message", "no message"])
@pytest.mark.parametrize("kind", _ODD)
def test_failed_items_of_any_content_are_in_the_error_file(
    tmp_path: Path, kind: str, refuse: Callable[[Any], Any]
) -> None:
    def changed(row: dict[str, Any]) -> Any:
        return _ODD[kind]() if row["n"] == 1 else row

    stream = read_sequence(_ROWS[:3]).map(changed).map(refuse)
    report = _write(tmp_path, stream.and_return(on_error="quarantine"), "first")
    rows = error_rows(node(tmp_path))
    assert report.manifest.failed == len(rows) == 3 - report.manifest.rows_out
    expected = "_MuteError" if refuse is _refuse_mutely else "ValueError"
    assert expected in {row["exception"] for row in rows}


class _Working:
    """Fails on some rows, and is slow on some, so that positions are taken between them."""

    def __init__(self, stop_at: int | None = None, seconds: float = 0.0) -> None:
        self.stop_at, self.seconds = stop_at, seconds

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["n"] % 3 == 1:
            time.sleep(self.seconds)
        if row["n"] == self.stop_at:
            raise KeyboardInterrupt
        if row["n"] in _FAILING:
            raise ValueError(row["n"])
        return row

    def __reduce__(self) -> Any:
        return _Working, ()  # it counts as the same code for every stop


def _stream(working: _Working) -> DataPipeline:
    return read_sequence(_ROWS).map(working).and_return(on_error="quarantine")


def _positions(folder: Path) -> list[Position]:
    (journal,) = node(folder).checkpoints.glob("*/journal")
    return read_positions(journal).positions


class _Interrupted:
    """A run that was interrupted after all failures, to be resumed many times."""

    def __init__(self, folder: Path) -> None:
        self._home, self._again = folder / "home", folder / "again"
        positions: list[Position] = []
        seconds = 0.15  # more than between two positions, unless the machine is busy
        while len({one.quarantined.size for one in positions}) < 3:
            shutil.rmtree(self._home, ignore_errors=True)
            with pytest.raises(KeyboardInterrupt):
                _write(self._home, _stream(_Working(stop_at=11, seconds=seconds)), "first")
            positions = _positions(self._home)
            seconds *= 2
        self.settled = max(one.items for one in positions)
        (self._quarantine,) = node(self._home).checkpoints.glob("*/quarantine.jsonl")
        self.content = self._quarantine.read_bytes()
        assert self.content.count(b"\n") == len(_FAILING)

    def go_on_with(self, content: bytes | None) -> RunReport:
        """Resume from a copy with another quarantine file, and check the published result."""
        shutil.rmtree(self._again, ignore_errors=True)
        shutil.copytree(self._home, self._again)
        place = self._again / self._quarantine.relative_to(self._home)
        if content is None:
            place.unlink()
        else:
            place.write_bytes(content)
        report = _write(self._again, _stream(_Working()), "second")
        folder = node(self._again)
        good = [row for row in _ROWS if row["n"] not in _FAILING]
        assert folder.result.read_bytes() == lines(good)
        assert [row["input"] for row in error_rows(folder)] == [{"n": n} for n in _FAILING]
        assert report.manifest.failed == len(_FAILING)
        return report


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> _Interrupted:
    return _Interrupted(tmp_path_factory.mktemp("interrupted"))


@pytest.mark.slow
def test_a_quarantine_file_cut_at_any_byte_loses_no_row(interrupted: _Interrupted) -> None:
    content = interrupted.content
    assert interrupted.go_on_with(content).manifest.resumed == interrupted.settled
    ends = {at + more for at, byte in enumerate(content) if byte == 10 for more in (0, 1)}
    sizes = ends.union(range(0, len(content), cases(7, campaign=1))) - {len(content)}
    resumed = [interrupted.go_on_with(content[:size]).manifest.resumed for size in sorted(sizes)]
    assert resumed == sorted(resumed)
    assert 0 < resumed[-1] < interrupted.settled  # it resumes from an intact position


@pytest.mark.slow
def test_a_quarantine_file_with_any_byte_changed_loses_no_row(interrupted: _Interrupted) -> None:
    for at in range(0, len(interrupted.content), 3):
        content = bytearray(interrupted.content)
        content[at] ^= 1 << at % 8
        report = interrupted.go_on_with(bytes(content))
        assert report.manifest.resumed < interrupted.settled


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, b"", bytes(1000), b"\xff" * 10])
def test_a_missing_or_replaced_quarantine_file_loses_no_row(
    interrupted: _Interrupted, content: bytes | None
) -> None:
    report = interrupted.go_on_with(content)
    assert "must be processed again: their output" in " ".join(report.notes) or (
        "starting afresh" in " ".join(report.notes)
    )


def test_bytes_after_the_last_position_are_cut_off(interrupted: _Interrupted) -> None:
    report = interrupted.go_on_with(interrupted.content + b'{"half a li')
    assert report.manifest.resumed == interrupted.settled


def test_a_quarantine_file_that_is_damaged_under_the_run_is_not_published(tmp_path: Path) -> None:
    def damaging(row: dict[str, Any]) -> dict[str, Any]:
        if damaged:
            return row
        time.sleep(0.01)  # a position is taken now and then
        kept = list(node(tmp_path).checkpoints.glob("*/quarantine.jsonl"))
        settled = [one.quarantined.size for one in _positions(tmp_path)]
        if kept and settled[-1:] == [kept[0].stat().st_size]:
            kept[0].write_bytes(kept[0].read_bytes()[:-5] + b"     ")
            damaged.append(row["n"])
        return row

    damaged: list[int] = []
    rows = read_sequence([*_ROWS, *({"n": n} for n in range(100, 3000))])
    stream = rows.map(_Working()).map(damaging)
    with pytest.raises(StorageError, match="read back the failed items") as caught:
        _write(tmp_path, stream.and_return(on_error="quarantine"), "first")
    assert damaged
    assert "quarantine.jsonl" in str(caught.value)
    assert not node(tmp_path).result.exists()
