"""Tests of stream_runner: streams written with their positions."""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import DataPipeline, RunReport, read_jsonl, read_sequence
from dagster_dataops.errors import (
    FolderLockedError,
    RunStoppedError,
    StreamDefinitionError,
    StreamItemError,
    StreamSourceError,
)
from dagster_dataops.testing import Operations
from tests.execution.helpers import lines, node, write_input
from tests.journals import read_positions
from tests.nodes import (
    NodeFolder,
    OperatorExecutor,
    Quiet,
    ResumePolicy,
    RunContext,
    existing,
    given_stream,
)

COUNT = 400
ROWS = [{"n": n, "text": f"é {n}"} for n in range(COUNT)]
_runs = itertools.count()


class Working:
    """A function of a map that counts its calls, and ends the run at one of them."""

    def __init__(self, stop_at: int | None = None, seconds: float = 0.001) -> None:
        self.calls: list[int] = []
        self.stop_at, self.seconds = stop_at, seconds

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(self.seconds)
        if row["n"] == self.stop_at:
            raise KeyboardInterrupt
        self.calls.append(row["n"])
        return row

    def __reduce__(self) -> Any:
        return Working, ()  # it counts as the same code for every stop


def write(path: Path, stream: object, **context: Any) -> RunReport:
    chosen = {
        "run": f"run-{next(_runs)}",
        "resume": ResumePolicy.AUTO,
        "lock_seconds": 0.2,
        "flush_seconds": 0.02,
    }
    given = RunContext(**{**chosen, **context})  # type: ignore[arg-type]
    operator = given_stream("mixed", lambda: stream)
    return OperatorExecutor(given).run(operator, [], node(path))


def interrupted(path: Path, stream: object) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(path, stream)


def test_a_stream_becomes_one_result(tmp_path: Path) -> None:
    report = write(tmp_path, read_sequence(ROWS))
    assert node(tmp_path).result.read_bytes() == lines(ROWS)
    manifest = report.manifest
    assert (manifest.rows_out, manifest.failed, manifest.resumed) == (COUNT, 0, 0)
    assert report.dataset.fingerprint == manifest.fingerprint
    assert not node(tmp_path).checkpoints.exists()


def test_an_empty_stream_becomes_an_empty_result(tmp_path: Path) -> None:
    assert write(tmp_path, read_sequence([])).dataset.rows == 0
    assert node(tmp_path).result.read_bytes() == b""


@pytest.mark.slow
def test_a_run_that_was_interrupted_resumes_where_it_stopped(tmp_path: Path) -> None:
    first = Working(stop_at=300)
    interrupted(tmp_path, read_sequence(ROWS).map(first))
    assert not node(tmp_path).result.exists()
    second = Working()
    report = write(tmp_path, read_sequence(ROWS).map(second))
    assert node(tmp_path).result.read_bytes() == lines(ROWS)
    resumed = report.manifest.resumed
    assert resumed > 0
    assert second.calls == list(range(resumed, COUNT))
    assert any(f"resuming: {resumed} items settled by" in note for note in report.notes)
    assert report.resumed_from == tuple(report.manifest.attempts[:-1])


@pytest.mark.slow
def test_many_interruptions_cost_only_calls_in_flight(tmp_path: Path) -> None:
    order = [row["n"] for row in read_sequence(ROWS).shuffle(30, seed=1).and_return()]
    for number in (50, 51, 120, 200, 399):  # every settled record was before this one
        stopping = Working(stop_at=order[number])
        interrupted(tmp_path, read_sequence(ROWS).shuffle(30, seed=1).map(stopping))
    write(tmp_path, read_sequence(ROWS).shuffle(30, seed=1).map(Working()))
    assert node(tmp_path).result.read_bytes() == lines(read_sequence(ROWS).shuffle(30, seed=1))


def test_an_item_that_takes_long_is_settled_at_once(tmp_path: Path) -> None:
    interrupted(tmp_path, read_sequence(ROWS[:5]).map(Working(stop_at=4, seconds=0.15)))
    assert write(tmp_path, read_sequence(ROWS[:5]).map(Working())).manifest.resumed == 4


def test_positions_are_not_taken_for_every_item(tmp_path: Path) -> None:
    rows = read_sequence([{"n": n} for n in range(50_000)]).map(_stop_late)
    interrupted(tmp_path, rows)
    (content,) = existing(node(tmp_path).checkpoints)
    assert len(read_positions(content.folder / "journal").positions) < 500


def _stop_late(row: dict[str, Any]) -> dict[str, Any]:
    if row["n"] == 49_999:
        raise KeyboardInterrupt
    return row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: read_sequence(rows).shuffle(31, seed=1).map(Working()), "shuffle"),
        (lambda rows: read_sequence(rows).shuffle(30, seed=2).map(Working()), "shuffle"),
        (lambda rows: read_sequence(rows[1:]).shuffle(30, seed=1).map(Working()), "read_sequence"),
        (lambda rows: read_sequence(rows).map(Working()), "its stages are"),
    ],
    ids=["options", "seed", "data", "stages"],
)
def test_another_stream_never_resumes_and_the_reason_is_logged(
    tmp_path: Path, change: Callable[[list[dict[str, Any]]], Operations], said: str
) -> None:
    interrupted(tmp_path, read_sequence(ROWS).shuffle(30, seed=1).map(Working(stop_at=300)))
    changed = change(ROWS)
    report = write(tmp_path, changed)
    assert report.manifest.resumed == 0
    assert node(tmp_path).result.read_bytes() == lines(change(ROWS))
    (note,) = report.notes
    assert note.startswith(("starting afresh: ", "starting afresh, without "))
    assert said in note


@pytest.mark.slow
def test_a_stream_of_another_seed_never_resumes(tmp_path: Path) -> None:
    def of(seed: int, stop_at: int | None) -> DataPipeline:
        return read_sequence(ROWS).shuffle(30).map(Working(stop_at)).and_return(seed=seed)

    interrupted(tmp_path, of(1, 390))
    report = write(tmp_path, of(2, None))
    assert report.manifest.resumed == 0
    assert "options or seeds changed" in report.notes[0]
    assert set(report.manifest.seeds) == {"read_sequence>shuffle"}


def test_seeds_are_kept_so_that_a_result_can_be_made_again(tmp_path: Path) -> None:
    report = write(tmp_path, read_sequence(ROWS).shuffle(30))
    (seed,) = report.manifest.seeds.values()
    again = read_sequence(ROWS).shuffle(30, seed=seed)
    assert node(tmp_path).result.read_bytes() == lines(again)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.jsonl", ROWS).path
    interrupted(tmp_path, read_jsonl(path).map(Working(stop_at=300)))
    write_input(path, ROWS[1:])
    report = write(tmp_path, read_jsonl(path).map(Working()))
    assert node(tmp_path).result.read_bytes() == lines(ROWS[1:])
    assert "read_jsonl) differs in its data" in report.notes[0]


def test_never_resuming_is_logged_and_the_old_checkpoint_stays_until_the_end(
    tmp_path: Path,
) -> None:
    interrupted(tmp_path, read_sequence(ROWS).map(Working(stop_at=300)))
    report = write(tmp_path, read_sequence(ROWS).map(Working()), resume=ResumePolicy.NEVER)
    assert "because resuming is switched off" in report.notes[0]
    assert not node(tmp_path).checkpoints.exists()


def test_damaged_output_is_made_again(tmp_path: Path) -> None:
    interrupted(tmp_path, read_sequence(ROWS).map(Working(stop_at=390)))
    (segment,) = node(tmp_path).checkpoints.glob("*/segment-*")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    second = Working()
    report = write(tmp_path, read_sequence(ROWS).map(second))
    assert node(tmp_path).result.read_bytes() == lines(ROWS)
    assert 0 < report.manifest.resumed < 250
    assert second.calls == list(range(report.manifest.resumed, COUNT))


def test_items_after_the_resumed_position_are_not_part_of_the_result(tmp_path: Path) -> None:
    """A killed run writes items that it does not settle, and a loss of power may leave anything."""
    interrupted(tmp_path, read_sequence(ROWS).map(Working(stop_at=300)))
    (segment,) = node(tmp_path).checkpoints.glob("*/segment-*")
    with segment.open("ab") as file:
        file.write(b'{"n":"never settled"}\n' * 10_000)
    report = write(tmp_path, read_sequence(ROWS).map(Working()))
    assert report.manifest.resumed > 0
    assert node(tmp_path).result.read_bytes() == lines(ROWS)
    assert report.dataset.size_bytes == len(lines(ROWS))


def test_quarantined_items_of_a_stopped_run_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the position that says so, before the run comes back."""
    synced: dict[str, bytes] = {}
    real = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        real(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced[path.name] = path.read_bytes()

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    stream = read_sequence(ROWS).map(failing).map(Working(stop_at=310))
    interrupted(tmp_path, stream.and_return(on_error="quarantine"))
    (place,) = node(tmp_path).checkpoints.glob("*/quarantine.jsonl")
    assert place.read_bytes().count(b"\n") == 4
    assert synced[place.name] == place.read_bytes()


@pytest.mark.slow
def test_a_checkpoint_with_no_intact_content_is_reported(tmp_path: Path) -> None:
    interrupted(tmp_path, read_sequence(ROWS).map(Working(stop_at=300)))
    (segment,) = node(tmp_path).checkpoints.glob("*/segment-*")
    segment.write_bytes(b"")
    report = write(tmp_path, read_sequence(ROWS).map(Working()))
    assert "all its positions are damaged" in report.notes[0]
    assert node(tmp_path).result.read_bytes() == lines(ROWS)


def test_a_finished_result_is_reused_on_request(tmp_path: Path) -> None:
    write(tmp_path, read_sequence(ROWS))
    second = Working()
    report = write(tmp_path, read_sequence(ROWS), reuse_finished=True)
    assert report.reused
    changed = write(tmp_path, read_sequence(ROWS).map(second), reuse_finished=True)
    assert not changed.reused
    assert len(second.calls) == COUNT


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ([1], "item 3 is a list, and a result holds dicts"),
        ("text", "item 3 is a str"),
        ({"x": {1}}, "item 3 cannot be written: key 'x' holds a set"),
        ({"x": float("nan")}, "item 3 cannot be written: key 'x' holds nan"),
        ({"x": [float("inf")]}, "item 3 cannot be written"),
    ],
)
def test_an_item_that_is_not_a_record_is_named_by_its_number(
    tmp_path: Path, item: object, said: str
) -> None:
    with pytest.raises(StreamItemError) as raised:
        write(tmp_path, read_sequence([{"n": 0}, {"n": 1}, {"n": 2}, item]))
    assert said in str(raised.value)
    assert "Stream stream.mixed" in str(raised.value)
    assert not node(tmp_path).result.exists()


def test_an_instance_of_a_dict_subclass_is_a_record(tmp_path: Path) -> None:
    class Row(dict[str, Any]):
        pass

    write(tmp_path, read_sequence([1]).map(lambda n: Row(n=n)))
    assert node(tmp_path).result.read_bytes() == b'{"n":1}\n'


def test_a_stream_that_never_ends_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for stream in (DataPipeline.count(key="n").shuffle(3), read_sequence(ROWS).repeat()):
        with pytest.raises(StreamDefinitionError, match=r"(count|repeat): never ends"):
            write(tmp_path, stream)
    assert not node(tmp_path).result.exists()


def test_a_missing_source_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StreamSourceError, match=r"nowhere\.jsonl"):
        write(tmp_path, read_jsonl(tmp_path / "nowhere.jsonl"))


def failing(row: dict[str, Any]) -> dict[str, Any]:
    if row["n"] % 100 == 7:
        msg = f"bad {row['n']}"
        raise ValueError(msg)
    return row


def test_quarantined_items_are_beside_the_result(tmp_path: Path) -> None:
    stream = read_sequence(ROWS).map(failing).and_return(on_error="quarantine")
    report = write(tmp_path, stream)
    rows = [orjson.loads(line) for line in node(tmp_path).errors.read_bytes().splitlines()]
    assert [row["message"] for row in rows] == ["bad 7", "bad 107", "bad 207", "bad 307"]
    assert (rows[1]["index"], rows[1]["stage"], rows[1]["input"]) == (1, "map", ROWS[107])
    assert report.manifest.failed == 4
    assert report.manifest.rows_out == COUNT - 4
    assert report.error_path == node(tmp_path).errors


def test_quarantined_items_survive_interruptions_without_duplicates(tmp_path: Path) -> None:
    def stream(stop_at: int | None) -> DataPipeline:
        worked = read_sequence(ROWS).map(failing).map(Working(stop_at))
        return worked.and_return(on_error="quarantine")

    for stop_at in (110, 212, 309):
        interrupted(tmp_path, stream(stop_at))
        (place,) = node(tmp_path).checkpoints.glob("*/quarantine.jsonl")
        with place.open("ab") as file:
            file.write(b'{"half a li')
    report = write(tmp_path, stream(None))
    rows = [orjson.loads(line) for line in node(tmp_path).errors.read_bytes().splitlines()]
    assert [row["message"] for row in rows] == ["bad 7", "bad 107", "bad 207", "bad 307"]
    assert report.manifest.failed == 4


def test_skipped_items_are_counted_and_leave_no_file(tmp_path: Path) -> None:
    report = write(tmp_path, read_sequence(ROWS).map(failing).and_return(on_error="skip"))
    assert report.manifest.failed == 4
    assert report.error_path is None
    assert not node(tmp_path).errors.exists()


def test_a_file_for_the_quarantine_that_was_given_is_used(tmp_path: Path) -> None:
    place = tmp_path / "mine.jsonl"
    stream = read_sequence(ROWS).map(failing)
    write(tmp_path, stream.and_return(on_error="quarantine", quarantine=place))
    assert len(place.read_bytes().splitlines()) == 4
    assert not node(tmp_path).errors.exists()


def test_a_stream_that_was_read_before_is_written_from_its_start(tmp_path: Path) -> None:
    stream = read_sequence(ROWS).and_return()
    next(iter(stream))
    write(tmp_path, stream)
    assert node(tmp_path).result.read_bytes() == lines(ROWS)
    assert next(iter(stream)) == ROWS[1]


@pytest.mark.slow
def test_a_stopped_run_settles_its_finished_records(tmp_path: Path) -> None:
    asked = itertools.count()
    with pytest.raises(RunStoppedError):
        write(
            tmp_path,
            read_sequence(ROWS * 3).map(Working(seconds=0.003)),
            should_stop=lambda: "enough" if next(asked) else None,
        )
    report = write(tmp_path, read_sequence(ROWS * 3).map(Working(seconds=0)))
    assert report.manifest.resumed > 0
    assert node(tmp_path).result.read_bytes() == lines(ROWS * 3)


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        with pytest.raises(FolderLockedError):
            write(tmp_path, read_sequence(ROWS))
        return iter([{"n": 1}])

    write(tmp_path, read_sequence([0]).yield_from(lambda _: read_sequence(list(rows()))))
    assert node(tmp_path).result.read_bytes() == b'{"n":1}\n'


def test_progress_counts_items_of_an_unknown_total(tmp_path: Path) -> None:
    class Watching(Quiet):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def update(self, state: Any) -> None:
            self.seen.append(state)

        def finish(self, state: Any) -> None:
            self.seen.append(state)

    watching = Watching()
    write(tmp_path, read_sequence(ROWS).map(Working()), progress=watching)
    counts = [state.records for state in watching.seen]
    assert counts == sorted(counts)
    assert counts[-1] == COUNT
    assert any(0 < count < COUNT for count in counts)
    assert {state.estimated_records for state in watching.seen} == {None}
    assert "400 records," in watching.seen[-1].describe(1.0)


def test_a_record_operator_ignores_the_checkpoint_of_a_stream(tmp_path: Path) -> None:
    from tests.execution.helpers import operator_for, plan

    interrupted(tmp_path, read_sequence(ROWS).map(Working(stop_at=300)))
    folder: NodeFolder = node(tmp_path)
    dataset = write_input(tmp_path / "in.jsonl", plan(["keep"]))
    context = RunContext(run="other", resume=ResumePolicy.AUTO)
    report = OperatorExecutor(context).run(operator_for("single", 1), [dataset], folder)
    assert report.manifest.resumed == 0
    assert report.manifest.rows_out == 1
