"""Properties of the journal reader for any file content.

The bytes of an example are a script that writes a journal: frames with right checksums around
arbitrary payloads and spans, raw noise between them, then cuts and flipped bits. A fuzzer that only
changed bytes would never get past the checksums.
"""

import struct
from collections.abc import Iterator

from dagster_dataops.checkpoints.journal.frames import (
    FrameKind,
    frame,
    json_frame,
    read_frames,
    read_spans,
    spans_frame,
)
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry, columns_of, pack
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.lines import Interval

_EMPTY = frame(FrameKind.SPANS, b"")
_END = 1 << 20  # bytes of the imagined input


class _Script:
    """Reads an example piece by piece; at its end it yields zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece

    def number(self, size: int = 1) -> int:
        return int.from_bytes(self.take(size), "little")


def check(data: bytes) -> None:
    """Read the journal that ``data`` describes, and ``data`` itself."""
    script = _Script(data)
    journal, written = _journal(script)
    check_bytes(data, frozenset())
    assert check_bytes(bytes(journal), frozenset(written)) == written, "frames were lost"
    damaged = bytearray(journal)
    for _ in range(script.number() % 4):
        if damaged:
            damaged[script.number(3) % len(damaged)] ^= 1 << (script.number() % 8)
    check_bytes(bytes(damaged[: script.number(3) or len(damaged)]), frozenset(written))


def _journal(script: _Script) -> tuple[bytearray, list[bytes]]:
    journal = bytearray()
    written: list[bytes] = []
    for _ in range(script.number() % 12):
        match script.number() % 6:
            case 0:
                journal += script.take(script.number())  # noise, or half a frame
                continue
            case 1:
                spans = list(_spans(script))
                made = _framed(script, spans) if spans else b""
            case 2:
                made = frame(FrameKind.SPANS, script.take(script.number()))
            case 3:
                kind = script.number() % 2
                made = frame(list(FrameKind)[kind], script.take(script.number()))
            case 4:
                made = json_frame(FrameKind.ATTEMPT, {"run": script.take(4).hex()})
            case _:
                made = frame(FrameKind.SPANS, _misleading(script))
        if made:
            journal += made
            written.append(made[: _first_frame_end(made)])  # a copy is read as its original
    return journal, written


def _first_frame_end(made: bytes) -> int:
    return len(_EMPTY) + int.from_bytes(made[5:9], "little")


def _framed(script: _Script, spans: list[Span]) -> bytes:
    return spans_frame(SpansEntry.of(script.number(), script.number(2), spans))


def _spans(script: _Script) -> Iterator[Span]:
    for _ in range(script.number() % 20):
        start, length, records = script.number(2), script.number() + 1, script.number()
        output, errors = script.number(), script.number() % 4
        failed = min(records, errors)
        yield span_of(start, length, records, output, failed=failed, error_bytes=errors)


def span_of(start: int, length: int, records: int, output_bytes: int, **others: int) -> Span:
    """Return a span of which few fields are given; the other fields are 0."""
    zeros = dict.fromkeys(Span._fields, 0)
    said = {"start": start, "length": length, "records": records, "output_bytes": output_bytes}
    return Span(**{**zeros, **said, **others})


def _misleading(script: _Script) -> bytes:
    spans = list(_spans(script))
    packed = pack(columns_of(spans)) if spans else b"r"
    count = len(spans) + script.number() % 3 - 1
    return struct.pack("<IQI?", 1, script.number(2), max(count, 0), False) + packed


def check_bytes(data: bytes, written: frozenset[bytes]) -> list[bytes]:
    """Read a journal, rebuild its table and return the frames."""
    table = SpanTable()
    found: list[bytes] = []
    for kind, payload in read_frames(data):
        found.append(frame(FrameKind(kind), payload))
        copied = frame(FrameKind.COPY, bytes([kind]) + payload)
        assert found[-1] in data or copied in data, "a frame was invented"
        assert not written or found[-1] in written, "a frame was read that nobody wrote"
        if kind == FrameKind.SPANS:
            _add(table, read_spans(payload))
    check_table(table)
    return found


def _add(table: SpanTable, spans: SpansEntry | None) -> None:
    if spans is None:
        return
    counts = {len(column) for column in spans.columns}
    assert len(counts) == 1, "the fields of spans differ in number"
    table.add(spans)


def check_table(table: SpanTable) -> None:
    """Check that every byte of the input is settled once, or open."""
    before = list(table.ordered())
    clean = table.without_overlaps()
    spans = list(clean.ordered())
    assert set(spans) <= set(before), "a span was invented"
    assert len(spans) == len(clean)
    assert clean.records == sum(span.records for span, _, _ in spans)
    position = 0
    for span, _, _ in spans:
        assert span.start >= position or not span.length, "two settled spans overlap"
        position = max(position, span.start + span.length)
    content = Interval(0, max(position, _END))
    covered = sum(span.length for span, _, _ in spans)
    open_bytes = sum(gap.end - gap.start for gap in clean.gaps(content))
    assert covered + open_bytes == content.end, "gaps and spans do not add up to the input"
