import threading
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.execution.workers.worker_main import serve
from tests.execution.engine import (
    STOP,
    Assignment,
    Failure,
    Kind,
    Mode,
    Range,
    Termination,
    protocol,
)
from tests.execution.helpers import act, expected_results, plan, write_input
from tests.journals import Span, segment_path

_RECORDS = plan(["keep", "expand", "fail", "drop"])


def _assignment(tmp_path: Path) -> Assignment:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    return Assignment(str(dataset.path), dataset.stamp(), str(tmp_path), 5, True)


def _served(assignment: Assignment, *told: bytes, **settings: Any) -> list[bytes]:
    """Return the messages of a worker in answer to these."""
    mine, theirs = Pipe()
    thread = threading.Thread(
        target=serve, args=(theirs, assignment, act(**settings), Termination())
    )
    thread.start()
    said = []
    for message in told:
        mine.send_bytes(message)
    thread.join(30)
    theirs.close()
    while mine.poll():
        try:
            said.append(mine.recv_bytes())
        except EOFError:
            break
    mine.close()
    return said


def test_a_worker_settles_a_range_into_its_own_segment(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path)
    size = (tmp_path / "input.jsonl").stat().st_size
    ready, spans, done = _served(assignment, protocol.pack_range(Range(0, size)), STOP)
    assert ready == protocol.pack(Kind.READY)
    offset, _, *fields = protocol.unpack(spans)
    span = Span(*fields)
    assert (offset, span.records, span.failed, span.dropped) == (0, 4, 1, 1)
    content = segment_path(tmp_path, 5).read_bytes()
    assert content[: span.output_bytes] == expected_results(_RECORDS)
    assert len(content) == span.output_bytes + span.error_bytes
    assert protocol.unpack(done)[0] >= 0


def test_a_worker_that_is_given_nothing_makes_no_segment(tmp_path: Path) -> None:
    """The run may be over, and its folder is being deleted."""
    _served(_assignment(tmp_path), STOP)
    assert not segment_path(tmp_path, 5).exists()


@pytest.mark.parametrize("mode", [Mode.CAREFUL, Mode.ALONE])
def test_a_careful_worker_settles_every_record_at_once(tmp_path: Path, mode: Mode) -> None:
    size = _assignment(tmp_path) and (tmp_path / "input.jsonl").stat().st_size
    told = protocol.pack_range(Range(0, size, mode))
    said = _served(_assignment(tmp_path), told, STOP)
    assert [message[0] for message in said] == [Kind.READY, *[Kind.SPAN] * 4, Kind.DONE]


def test_a_worker_stops_at_a_failure_that_is_not_ignored(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path)
    size = (tmp_path / "input.jsonl").stat().st_size
    said = _served(assignment, protocol.pack_range(Range(0, size)), _ignore_errors=False)
    assert [message[0] for message in said] == [Kind.READY, Kind.SPAN, Kind.FAILED]
    assert Span(*protocol.unpack(said[1])[2:]).records == 2
    assert Failure(*protocol.unpack(said[2])).exception == "ValueError"


def test_a_different_input_than_assigned_is_a_fault(tmp_path: Path) -> None:
    (said,) = _served(replace(_assignment(tmp_path), stamp=(1, 2, 3, 4)))
    assert said[0] == Kind.FAULT
    assert "changed while it was being processed" in protocol.unpack(said)[0]


@pytest.mark.parametrize("gone", ["input", "folder"])
def test_files_that_cannot_be_opened_are_a_fault(tmp_path: Path, gone: str) -> None:
    assignment = replace(_assignment(tmp_path), **{gone: str(tmp_path / "gone" / "x")})
    orders = [protocol.pack_range(Range(0, 10))] if gone == "folder" else []
    *_, said = _served(assignment, *orders)
    assert said[0] == Kind.FAULT


def test_a_worker_ends_when_its_connection_closes(tmp_path: Path) -> None:
    mine, theirs = Pipe()
    connection: Connection = mine
    connection.close()
    serve(theirs, _assignment(tmp_path), act(), Termination())
    theirs.close()
