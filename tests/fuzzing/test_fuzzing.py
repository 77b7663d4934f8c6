"""Tests that the readers handle any input: examples of hypothesis, and saved ones of the fuzzer."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.frames import (
    FrameKind,
    frame,
    json_frame,
    read_frames,
    spans_frame,
)
from dagster_dataops.checkpoints.journal.span import SpansEntry, unpack
from tests.each import each
from tests.fuzzing import journal, lines, selectors

_CORPUS = Path(__file__).parent / "corpus"
_KEPT = {
    target: sorted(path for path in (_CORPUS / target).iterdir() if path.is_file())
    for target in ("journal", "lines", "selectors")
}


@each("path", _KEPT["journal"])
def test_the_journal_reader_handles_the_examples_of_the_fuzzer(path: Path) -> None:
    journal.check(path.read_bytes())


@each("path", _KEPT["lines"])
def test_the_jsonl_reader_handles_the_examples_of_the_fuzzer(path: Path) -> None:
    lines.check(path.read_bytes() or b"\0")


@each("path", _KEPT["selectors"])
def test_selectors_handle_the_examples_of_the_fuzzer(path: Path) -> None:
    selectors.check(path.read_bytes())


def test_the_corpus_stays_small() -> None:
    kept = [path for paths in _KEPT.values() for path in paths]
    assert 20 < len(kept) < 200
    assert sum(path.stat().st_size for path in kept) < 500_000


@given(st.binary(max_size=400))
@example(b"DOJ1" * 20)
def test_arbitrary_bytes_hold_no_frame(data: bytes) -> None:
    assert journal.check_bytes(data, frozenset()) == []


@given(st.binary(max_size=600))
def test_a_journal_of_any_frames_yields_the_whole_ones(script: bytes) -> None:
    journal.check(script)


_SPAN = st.builds(
    journal.span_of,
    st.integers(0, 2**64 - 2**33),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
_WRITTEN = st.lists(
    st.builds(
        SpansEntry.of,
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**63),
        st.lists(_SPAN, min_size=1, max_size=20),
    ).map(spans_frame)
    | st.builds(lambda run: json_frame(FrameKind.ATTEMPT, {"run": run}), st.text(max_size=9)),
    max_size=6,
)
_DAMAGE = st.lists(
    st.tuples(st.sampled_from(["flip", "cut", "insert", "double"]), st.floats(0, 1), st.binary()),
    max_size=5,
)


@given(_WRITTEN, _DAMAGE)
def test_a_damaged_journal_never_yields_unwritten_spans(
    written: list[bytes], damage: list[tuple[str, float, bytes]]
) -> None:
    data = bytearray(b"".join(written))
    for kind, place, noise in damage:
        at = int(place * len(data))
        match kind:
            case "flip" if at < len(data):
                data[at] ^= 1 << (len(noise) % 8)
            case "cut":
                del data[at : at + len(noise)]
            case "insert":
                data[at:at] = noise
            case "double":
                data += data[:at]
    whole = {frame(FrameKind(one.kind), one.payload) for one in read_frames(b"".join(written))}
    found = {frame(FrameKind(one.kind), one.payload) for one in read_frames(bytes(data))}
    assert found <= whole
    assert damage or found == whole


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_unpacking_gives_the_stated_number_of_spans(data: bytes, count: int) -> None:
    try:
        columns = unpack(data, count)
    except ValueError:
        return
    assert {len(column) for column in columns} == {count}


_LINE_ENDS = [b"\n", b"\r\n", b"\r", b" ", b"\0", b"\xe2\x80\xa8"]
_NO_TEXT = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xc3"]
_JSON = [b'{"a":1}', b'{"b":', b"[1]", b"NaN", b'{"c":NaN}', b'"\\ud800"', b"9" * 40, b"[" * 300]
_PIECES = st.sampled_from([*_LINE_ENDS, *_NO_TEXT, *_JSON])
_CONTENT = st.lists(_PIECES | st.binary(max_size=3), max_size=25).map(b"".join)


@given(_CONTENT, st.integers(1, 64), st.lists(st.integers(0, 500), max_size=5))
def test_a_file_read_in_any_blocks_and_ranges_has_the_lines_of_the_whole(
    content: bytes, block: int, cuts: list[int]
) -> None:
    lines.check_content(content, block, cuts)


@pytest.mark.parametrize("size", [1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_huge_lines_are_whole_lines(size: int) -> None:
    huge = b'{"a":"' + b"x" * (size - 8) + b'"}'
    content = b"\n".join([b"{}", huge, b"\0", huge, huge[:-1], b"{}"])
    lines.check_content(content, 1 << 20, [1, size, size + 3, size + 4, size * 2])
