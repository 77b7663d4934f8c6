"""Tests of batches, by `settle_steps`, `calling_once` and `span_draft`."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import To, data, data_register
from dagster_dataops.execution.records.span_draft import SpanDraft, span_of
from dagster_dataops.foundation.concurrency.fork_safety import ForkGuard
from tests.execution.engine import Failure, Finished, calling_once
from tests.faults.crashing import in_child
from tests.journals import Line

data_register.new_group("batched")
Records = list[dict[str, Any]]


class Sized(data.batched):
    """Writes the size of each batch; fails on demand."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.calls: list[list[int]] = []

    def forward_batch(self, records: Records) -> list[Any]:
        self.calls.append([record["n"] for record in records])
        if any(record["do"] == "raise" for record in records):
            raise ValueError("one of these")
        if any(record["do"] == "short" for record in records):
            return []
        return [self._outcome(record, len(records)) for record in records]

    def _outcome(self, record: dict[str, Any], size: int) -> Any:
        match record["do"]:
            case "fail":
                return KeyError(record["n"])
            case "drop":
                return []
            case "split":
                return [record, record]
            case "same":
                return None
            case "nonsense":
                return 7
            case "nan":
                return {"n": float("nan")}
        return {**record, "size": size}


@data_register("data.batched", rewrite_func="forward_window")
def packed(records: Records, tail: Any = ()) -> Any:
    return [{"all": [record["n"] for record in records]}, *tail]


@data_register("data.batched", rewrite_func="forward_batch")
async def sized_async(records: Records) -> list[Any]:
    return [{**record, "size": len(records)} for record in records]


class Flaky(data.batched):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.calls: list[list[int]] = []

    def forward_batch(self, records: Records) -> list[Any]:
        self.calls.append([record["n"] for record in records])
        again = len(self.calls) > 1
        return [
            ConnectionError("busy") if record["do"] == "flaky" and not again else record
            for record in records
        ]


class Parted(data.batched, outputs=("even", "odd")):
    def forward_batch(self, records: Records) -> list[Any]:
        return [
            "nowhere" if record["do"] == "wrong" else To("odd" if record["n"] % 2 else "even")
            for record in records
        ]


def _lines(kinds: list[str]) -> list[Line]:
    found: list[Line] = []
    start = 0
    for n, kind in enumerate(kinds):
        text = json.dumps({"n": n, "do": kind}).encode() if kind != "bad" else b"{bad"
        found.append(Line(start, start + len(text) + 1, text))
        start += len(text) + 1
    return found


def _settled(operator: Any, kinds: list[str]) -> list[Finished]:
    with calling_once(operator, ()) as settle:
        return settle(_lines(kinds))


def _shown(finished: list[Finished]) -> list[Any]:
    """Return the records or the exception of each line."""
    return [
        outcome.exception
        if isinstance(outcome, Failure)
        else [json.loads(line) for line in (outcome or b"").splitlines()]
        for _, outcome, *_ in finished
    ]


def test_each_record_of_a_batch_has_its_outcome() -> None:
    kinds = ["keep", "fail", "drop", "split", "same", "nonsense", "nan"]
    keep, fail, drop, split, same, nonsense, nan = _shown(_settled(data.batched.Sized(), kinds))
    assert keep == [{"n": 0, "do": "keep", "size": 7}]
    assert (fail, nonsense, nan) == ("KeyError", "InvalidResult", "InvalidResult")
    assert drop == []
    assert split == [{"n": 3, "do": "split"}] * 2
    assert same == [{"n": 4, "do": "same"}]


def test_a_batch_that_raises_is_halved_until_the_bad_record_is_alone() -> None:
    operator = data.batched.Sized()
    with calling_once(operator, ()) as settle:
        found = _shown(settle(_lines(["keep"] * 5 + ["raise"] + ["keep"] * 2)))
    assert found[5] == "ValueError"
    assert [one[0]["size"] for n, one in enumerate(found) if n != 5] == [4, 4, 4, 4, 1, 2, 2]
    assert operator.calls == [[*range(8)], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [4], [5], [6, 7]]


def test_lines_that_are_no_records_are_not_in_the_batch() -> None:
    operator = data.batched.Sized()
    with calling_once(operator, ()) as settle:
        found = _shown(settle(_lines(["keep", "bad", "keep"])))
    assert operator.calls == [[0, 2]]
    assert found[1] == "InvalidLine"


def test_a_list_of_the_wrong_length_fails_the_record_that_causes_it() -> None:
    finished = _settled(data.batched.Sized(), ["keep", "short"])
    assert _shown(finished)[1] == "InvalidResult"
    outcome = finished[1][1]
    assert isinstance(outcome, Failure)
    assert "returned a list of 0 for a batch of 1 record;" in outcome.message


def test_a_window_has_the_records_of_its_batch() -> None:
    finished = _settled(packed(), ["keep"] * 3)
    assert _shown(finished) == [[{"all": [0, 1, 2]}], [], []]
    span = span_of(finished, "packed", check_input=False)
    assert (span.span.records, span.span.emitted, span.span.dropped) == (3, 1, 0)


def test_a_window_that_returns_no_dicts_fails_its_records() -> None:
    assert _shown(_settled(packed(tail=[1]), ["keep"] * 2)) == ["InvalidResult"] * 2


def test_coroutines_take_batches() -> None:
    found = _shown(_settled(sized_async(), ["keep"] * 3))
    assert [one[0]["size"] for one in found] == [3, 3, 3]


def test_failed_records_are_tried_again_in_a_batch_of_their_own() -> None:
    operator = data.batched.Flaky(_retries=2, _backoff=0.001)
    with calling_once(operator, ()) as settle:
        found = _shown(settle(_lines(["keep", "flaky", "keep", "flaky"])))
    assert operator.calls == [[0, 1, 2, 3], [1, 3]]
    assert [one[0]["n"] for one in found] == [0, 1, 2, 3]


def test_records_of_a_batch_go_to_named_outputs() -> None:
    finished = _settled(data.batched.Parted(), ["keep", "keep", "wrong"])
    assert [type(outcome) for _, outcome, *_ in finished] == [bytes, bytes, Failure]
    span = span_of(finished, "parted", check_input=False)
    assert span.notes is not None
    assert list(span.notes.outputs()) == [0, 1]


def test_an_error_line_holds_the_record_and_where_it_was() -> None:
    draft = SpanDraft()
    draft.records, draft.output = 3, bytearray(9)
    draft.fail(Failure("E", "m", "t", offset=17), b'{"a": 1}', "g.o")
    draft.fail(Failure("E", "m", "t"), b"\xffx" * 50_000, "g.o")
    failed, raw = map(orjson.loads, draft.errors)
    assert failed == {
        "offset": 17,
        "length": 8,
        "position": 3,
        "output": 9,
        "dropped": 0,
        "operator": "g.o",
        "exception": "E",
        "message": "m",
        "traceback": "t",
        "attempts": 1,
        "input": {"a": 1},
    }
    assert raw["input"] == "\\xffx" * (32 << 10)
    assert raw["position"] == 4


def test_undoing_removes_what_was_added_since_the_mark() -> None:
    draft = SpanDraft()
    draft.fail(Failure("E", "first", ""), b"{}", "g.o")
    mark = draft.mark()
    draft.output += b"{}\n"
    draft.records, draft.emitted = 2, 1
    draft.fail(Failure("E", "second", "", disposition=b"{}"), b"{}", "g.o")
    draft.undo(mark)
    assert draft.mark() == mark
    assert b"first" in b"".join(draft.errors)
    assert draft.finished(0, 3, None).span.failed == 1


def test_the_process_itself_continues() -> None:
    ForkGuard().check()


def test_a_forked_copy_ends_at_once_with_a_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    guard = ForkGuard()

    def go_on() -> None:
        guard.check()
        (tmp_path / "went on").touch()

    assert in_child(go_on) == 1
    assert not list(tmp_path.iterdir())
    assert "returned from the operator's call" in capfd.readouterr().err
