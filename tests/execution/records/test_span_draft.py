"""Spans that are built of records."""

import orjson

from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.span_draft import SpanDraft


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
    assert draft.settled(0, 3, None).span.failed == 1
