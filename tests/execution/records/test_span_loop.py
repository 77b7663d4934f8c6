import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.data import data_register
from dagster_dataops.execution.records import span_loop
from dagster_dataops.execution.records.calls import opened_calls
from dagster_dataops.execution.records.span_loop import SpanLoop
from tests.execution.engine import CallEach, Failure, Outcome, Stretch, Tally
from tests.execution.helpers import calls_of
from tests.faults.crashing import wait_until
from tests.journals import FinishedSpan, Span, checksum


def _settle(line: bytes) -> Outcome:
    if line.isspace() or not line:
        return None
    if line.startswith(b"fail"):
        return Failure("ValueError", line.decode(), "")
    if line.startswith(b"interrupt"):
        raise KeyboardInterrupt
    return b"" if line.startswith(b"drop") else line.upper() + b"\n"


def in_bulk(settle: Callable[[bytes], Outcome]) -> CallEach:
    """Return a function that settles stretches of lines with one that settles a line."""

    def settle_many(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
        settled = dropped = extra = 0
        for line in lines:
            outcome = settle(line.removesuffix(b"\n"))
            if not isinstance(outcome, bytes):
                return Stretch(settled, dropped, extra, line, outcome)
            output += outcome
            dropped += not outcome
            settled += 1
            if time.monotonic() >= until:
                break
        return Stretch(settled, dropped, extra)

    return settle_many


class _Ranges:
    """Runs a `SpanLoop` over a file with some content and keeps its spans."""

    def __init__(
        self, path: Path, content: bytes, settle: Callable[[bytes], Outcome] = _settle, **given: Any
    ) -> None:
        path.write_bytes(content)
        self.content = content
        self.spans: list[tuple[Span, bytes]] = []
        self._descriptor = os.open(path, os.O_RDONLY)
        settings = {name: given.pop(name) for name in list(given) if name.startswith("_")}
        calls = calls_of(in_bulk(settle), **settings)
        options = {"checks_input": True, **given}
        self._loop = SpanLoop(calls, self._descriptor, self._take, **options)

    def _take(self, settled: FinishedSpan) -> None:
        self.spans.append((settled.span, bytes(settled.output) + settled.errors))

    def run(self, start: int = 0, end: int | None = None, **given: Any) -> Any:
        return self._loop.run(start, len(self.content) if end is None else end, **given)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let another thread shorten ranges that take too long."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.05):
                self._loop.shorten_if_late()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @property
    def position(self) -> int:
        return self._loop.position

    def close(self) -> None:
        os.close(self._descriptor)

    def check(self, until: int | None = None) -> None:
        """Check that the spans follow one another and are correct, up to a position."""
        position = 0
        for span, output in self.spans:
            assert span.start == position
            position += span.length
            taken = self.content[span.start : position]
            assert taken.endswith(b"\n") or position == len(self.content)
            lines = [line for line in taken.split(b"\n") if line and not line.isspace()]
            assert span.records == len(lines)
            assert span.failed == sum(line.startswith(b"fail") for line in lines)
            assert span.emitted == output[: span.output_bytes].count(b"\n")
            assert span.dropped == sum(line.startswith(b"drop") for line in lines)
            assert (span.input_check, span.output_check) == (checksum(taken), checksum(output))
            kept = [line for line in lines if not line.startswith((b"fail", b"drop"))]
            assert output[: span.output_bytes] == b"".join(x.upper() + b"\n" for x in kept)
            errors = [orjson.loads(x) for x in output[span.output_bytes :].splitlines()]
            assert [row["position"] for row in errors] == [
                place for place, line in enumerate(lines) if line.startswith(b"fail")
            ]
            for row in errors:
                assert self.content[row["offset"] :].startswith(row["input"].encode())
                assert row["length"] == len(row["input"])
                before = lines[: row["position"]]
                assert row["dropped"] == sum(line.startswith(b"drop") for line in before)
                done = [line for line in before if not line.startswith((b"fail", b"drop"))]
                assert row["output"] == sum(len(line) + 1 for line in done)
        assert position == (len(self.content) if until is None else until)


_LINES = st.lists(
    st.sampled_from([b"a", b"bb", b"", b"  ", b"\r", b"fail 1", b"drop", b"longer line"]),
    max_size=30,
)


@given(_LINES, st.booleans(), st.booleans(), st.integers(1, 8), st.sampled_from([0.0, 9.0]))
@settings(deadline=None)
def test_spans_describe_the_outcome_of_every_line(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    newline: bool,
    one_by_one: bool,
    most: int,
    seconds: float,
) -> None:
    content = b"\n".join(lines) + (b"\n" if newline and lines else b"")
    ranges = _Ranges(tmp_path_factory.mktemp("x") / "input", content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_loop, "_MAX_SLICE", most)
        patch.setattr(span_loop, "SPAN_SECONDS", seconds)
        assert ranges.run(one_by_one=one_by_one) is None
    ranges.check()
    ranges.close()


@given(_LINES.filter(bool), st.data())
@settings(deadline=None)
def test_an_interrupt_at_any_line_leaves_whole_spans(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(lines) - 1))
    lines = [*lines[:at], b"interrupt", *lines[at:]]
    ranges = _Ranges(tmp_path_factory.mktemp("x") / "input", b"\n".join(lines) + b"\n")
    with pytest.raises(KeyboardInterrupt):
        ranges.run()
    settled = sum(span.length for span, _ in ranges.spans)
    assert settled <= sum(len(line) + 1 for line in lines[:at])
    ranges.check(settled)
    ranges.close()


def test_a_failure_before_an_interrupt_does_not_shift_the_span(tmp_path: Path) -> None:
    ranges = _Ranges(tmp_path / "input", b"a\n" * 7 + b"fail\n" * 4 + b"interrupt\n")
    with pytest.raises(KeyboardInterrupt):
        ranges.run()
    ranges.check(sum(span.length for span, _ in ranges.spans))
    ranges.close()


@given(_LINES.filter(bool), st.data())
@settings(deadline=None)
def test_the_first_failure_ends_the_range_and_earlier_records_are_settled(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    good = [line for line in lines if not line.startswith(b"fail")]
    at = data.draw(st.integers(0, len(good)))
    content = b"\n".join([*good[:at], b"fail here", *good[at:]]) + b"\n"
    path = tmp_path_factory.mktemp("x") / "input"
    ranges = _Ranges(path, content, _ignore_errors=False)
    failed = ranges.run()
    assert failed.offset == content.index(b"fail here")
    ranges.check(failed.offset)
    ranges.close()


@pytest.mark.slow
def test_slow_records_after_quick_ones_are_settled_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice sized for records of microseconds must not hold back records of seconds."""
    monkeypatch.setattr(span_loop, "SPAN_SECONDS", 0.05)

    def settle(line: bytes) -> Outcome:
        if line == b"slow":
            time.sleep(0.3)
        return line.upper() + b"\n"

    ranges = _Ranges(tmp_path / "input", b"a\n" * 20_000 + b"slow\n" * 8, settle)
    ranges.run()
    ranges.check()
    assert max(output.count(b"SLOW") for _, output in ranges.spans) <= 1
    ranges.close()


@pytest.mark.slow
def test_a_range_out_of_time_ends_with_the_record_under_way(tmp_path: Path) -> None:
    def settle(line: bytes) -> Outcome:
        time.sleep(0.1 if line == b"slow" else 0.0)
        return _settle(line)

    ranges = _Ranges(tmp_path / "input", b"a\n" * 100 + b"slow\n" * 30, settle)
    assert ranges.run(patience=1.0) is None  # in which a busy machine does the quick ones
    assert 200 < ranges.position < 260
    ranges.check(until=ranges.position)
    assert ranges.run(ranges.position) is None
    assert ranges.position == len(ranges.content)
    ranges.check()
    ranges.close()


@pytest.mark.slow
def test_lines_after_a_stuck_record_are_left_to_other_workers(tmp_path: Path) -> None:
    """The new end is reported during the record; nothing is settled or reported again."""
    told: list[tuple[int, int]] = []
    stuck: list[int] = []

    def settle(line: bytes) -> Outcome:
        if line == b"stuck":
            wait_until(lambda: bool(told), 10, "the end of the range")
            stuck.append(len(told))
        return _settle(line)

    content = b"a\n" * 1000 + b"stuck\n" + b"b\n" * 200_000
    ranges = _Ranges(
        tmp_path / "input",
        content,
        settle,
        shortened=lambda end: told.append((end, threading.get_ident())),
    )
    with ranges.watched():
        assert ranges.run(patience=2.0) is None  # in which a busy machine gets to the stuck one
    assert stuck == [1]
    (first, teller), *others = told
    assert teller != threading.get_ident()
    assert 2006 <= first < len(content)
    assert all(end < first for end, _ in others)
    assert ranges.position == told[-1][0]
    ranges.check(until=ranges.position)
    ranges.run(ranges.position)
    ranges.check()
    ranges.close()


def test_an_overdue_range_reports_its_new_end_early(tmp_path: Path) -> None:
    told: list[int] = []

    def settle(line: bytes) -> Outcome:
        time.sleep(0.01)
        return _settle(line)

    ranges = _Ranges(tmp_path / "input", b"a\n" * 200, settle, shortened=told.append)
    ranges.run(patience=0.2)
    assert ranges.position == told[-1] < 400
    assert told == sorted(set(told), reverse=True)
    ranges.close()


def test_a_range_without_time_gets_at_least_one_record_done(tmp_path: Path) -> None:
    ranges = _Ranges(tmp_path / "input", b"a\n" * 3)
    while (before := ranges.position) < len(ranges.content):
        assert ranges.run(before, patience=0.0) is None
        assert ranges.position > before
    ranges.check()
    ranges.close()


def test_a_large_output_is_settled_before_it_fills_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_loop, "_BUFFER_BYTES", 5000)
    monkeypatch.setattr(span_loop, "_SLICE_BYTES", 1000)
    content = b"x" * 999 + b"\n"
    ranges = _Ranges(tmp_path / "input", content * 100)
    ranges.run()
    ranges.check()
    assert max(len(output) for _, output in ranges.spans) < 15_000
    ranges.close()


def test_no_range_makes_no_span(tmp_path: Path) -> None:
    ranges = _Ranges(tmp_path / "input", b"a\nb\n")
    ranges.run(2, 2)
    assert ranges.spans == []
    ranges.run(2, 4)
    assert [(span.start, span.length) for span, _ in ranges.spans] == [(2, 2)]
    ranges.close()


def test_input_checksums_are_left_out_by_default(tmp_path: Path) -> None:
    ranges = _Ranges(tmp_path / "input", b"a\n", checks_input=False)
    ranges.run()
    assert ranges.spans[0][0].input_check == 0
    ranges.close()


def test_an_interrupted_call_keeps_earlier_records(tmp_path: Path) -> None:
    @data_register("data.spanning")
    def stops_at(record, number=0):
        if record["n"] == number:
            raise KeyboardInterrupt

    content = b"".join(b'{"n":%d}\n' % number for number in range(300))
    path = tmp_path / "input.jsonl"
    path.write_bytes(content)
    spans: list[Span] = []
    descriptor = os.open(path, os.O_RDONLY)
    with opened_calls(stops_at(number=200), (KeyboardInterrupt,), Tally()) as calls:
        loop = SpanLoop(
            calls, descriptor, lambda settled: spans.append(settled.span), checks_input=False
        )
        with pytest.raises(KeyboardInterrupt):
            loop.run(0, len(content))
    os.close(descriptor)
    assert sum(span.records for span in spans) == 200
