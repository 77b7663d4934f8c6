import random

import pytest

from dagster_dataops.checkpoints.journal.frames import JournalFrame, json_frame, read_spans
from tests.journals import FrameKind, Span, SpansEntry, frame, read_frames, spans_frame

_SPANS = [Span(n * 10, 10, 1, 1, 0, 0, 5, 0, n, n) for n in range(12)]
_FRAMES = [
    frame(FrameKind.ATTEMPT, b'{"run":"one"}'),
    spans_frame(SpansEntry.of(1, 0, _SPANS[:3])),
    spans_frame(SpansEntry.of(2, 77, _SPANS)),
    frame(FrameKind.SPANS, b""),
    frame(FrameKind.ATTEMPT, b'{"run":"DOJ1 DOJ1"}'),
    frame(FrameKind.ATTEMPT, b"DOJ1" * 5),
]
_JOURNAL = b"".join(_FRAMES)
_ENDS = [sum(map(len, _FRAMES[: count + 1])) for count in range(len(_FRAMES))]
_WHOLE = list(read_frames(_JOURNAL))


def test_frames_come_back_as_they_were_written() -> None:
    assert [item.kind for item in _WHOLE] == [1, 2, 2, 2, 1, 1]
    assert b"".join(frame(FrameKind(item.kind), item.payload) for item in _WHOLE) == _JOURNAL


def test_a_journal_cut_at_any_byte_yields_the_whole_frames_before_the_cut() -> None:
    for cut in range(len(_JOURNAL) + 1):
        complete = sum(end <= cut for end in _ENDS)
        assert list(read_frames(_JOURNAL[:cut])) == _WHOLE[:complete], cut


def test_frames_appended_after_a_torn_one_are_read() -> None:
    for cut in range(1, len(_FRAMES[2])):
        torn = _FRAMES[0] + _FRAMES[2][:cut] + _FRAMES[1]
        assert list(read_frames(torn)) == [_WHOLE[0], _WHOLE[1]], cut


def test_a_flipped_bit_costs_no_other_frame() -> None:
    for position in range(len(_JOURNAL)):
        damaged = bytearray(_JOURNAL)
        damaged[position] ^= 1 << (position % 8)
        hit = sum(end <= position for end in _ENDS)
        left = [item for place, item in enumerate(_WHOLE) if place != hit]
        assert list(read_frames(bytes(damaged))) == left, position


def test_damage_costs_no_attempt() -> None:
    journal = json_frame(FrameKind.ATTEMPT, {"run": "one"})
    journal += json_frame(FrameKind.ATTEMPT, {"run": "one"})  # a retry of the same run
    journal += _FRAMES[1]
    whole = list(read_frames(journal))
    assert whole == [_WHOLE[0], _WHOLE[0], _WHOLE[1]]
    for position in range(len(journal) - len(_FRAMES[1])):
        damaged = bytearray(journal)
        damaged[position] ^= 1 << (position % 8)
        assert list(read_frames(bytes(damaged))) == whole, position


def test_an_incomplete_attempt_and_a_copy_do_not_count() -> None:
    attempt = json_frame(FrameKind.ATTEMPT, {"run": "one"})
    for cut in range(len(attempt) + 1):
        expected = _WHOLE[:1] if cut >= len(_FRAMES[0]) else []
        assert list(read_frames(attempt[:cut])) == expected, cut
    assert list(read_frames(frame(FrameKind.COPY, b""))) == []


def test_noise_never_yields_a_frame_that_was_not_written() -> None:
    chance = random.Random(3)
    for _ in range(300):
        pieces = [chance.randbytes(chance.randrange(40)) + item for item in _FRAMES]
        noisy = bytearray(b"".join(pieces))
        for _ in range(chance.randrange(6)):
            noisy[chance.randrange(len(noisy))] = chance.randrange(256)
        assert set(read_frames(bytes(noisy))) <= set(_WHOLE)


@pytest.mark.parametrize("data", [b"", b"DOJ1", b"DOJ1" * 100, b"\0" * 50], ids=repr)
def test_data_without_frames_yields_none(data: bytes) -> None:
    assert list(read_frames(data)) == []


def test_spans_come_back_with_their_place() -> None:
    assert read_spans(_WHOLE[2].payload) == SpansEntry.of(2, 77, _SPANS)


@pytest.mark.parametrize("payload", [b"", b"x", b"\0" * 20, _WHOLE[1].payload[:-1]], ids=len)
def test_an_invalid_payload_of_spans_is_skipped(payload: bytes) -> None:
    assert read_spans(payload) is None


def test_the_kind_is_part_of_the_checksum() -> None:
    damaged = bytearray(_FRAMES[1])
    damaged[4] = FrameKind.ATTEMPT
    assert list(read_frames(bytes(damaged))) == []
    assert list(read_frames(_FRAMES[1])) == [JournalFrame(FrameKind.SPANS, _WHOLE[1].payload)]
