"""Tests of dagster_dataops.models.replies.token_estimates, media_tokens and image_sizes."""

import base64
import struct
from typing import Any

import pytest

from dagster_dataops.models.replies.image_sizes import image_size
from dagster_dataops.models.replies.token_estimates import estimate, reply_tokens, text_tokens
from tests.each import each


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(300_000)


def jpeg(width: int, height: int) -> bytes:
    profile = b"\xff\xe2" + struct.pack(">H", 5000) + bytes(4998)
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width)
    return b"\xff\xd8" + profile + frame + bytes(100)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def webp(kind: bytes, width: int, height: int) -> bytes:
    if kind == b"VP8 ":
        inner = bytes(10) + struct.pack("<HH", width, height)
    elif kind == b"VP8L":
        inner = bytes(4) + b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        inner = bytes(8) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + bytes(4) + b"WEBP" + kind + inner + bytes(20)


SIZES = {
    "png": png(1000, 600),
    "jpeg": jpeg(1000, 600),
    "gif": gif(1000, 600),
    **{f"webp{n}": webp(kind, 1000, 600) for n, kind in enumerate((b"VP8 ", b"VP8L", b"VP8X"))},
}


@each("name", list(SIZES))
def test_the_size_is_read_from_the_first_bytes(name: str):
    assert image_size(SIZES[name]) == (1000, 600)


def test_the_size_of_other_bytes_is_not_known():
    for name, whole in SIZES.items():
        for length in range(60):
            found = image_size(whole[:length])
            assert found in {None, (1000, 600)}, (name, length)
    for odd in (b"", b"BM" + bytes(50), png(0, 5), png(1 << 30, 5), b"\xff\xd8" + b"\xff" * 1000):
        assert image_size(odd) is None


def asked(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": list(parts)}], **fields}


def tokens_of(*parts: Any, media: dict[str, float] | None = None) -> float:
    return estimate(asked(*parts), media=media)[0]


def data_url(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@each(
    "case",
    [
        ((512, 512), 85 + 170),
        ((1024, 1024), 85 + 4 * 170),
        ((2048, 4096), 85 + 6 * 170),
        ((100, 100), 85 + 170),
        ((4096, 512), 85 + 4 * 170),
    ],
)
def test_an_image_counts_by_its_size_and_not_by_its_bytes(case: tuple[tuple[int, int], int]):
    size, tokens = case
    url = data_url(png(*size))

    for part in (
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": url},
        {"type": "input_image", "image_url": url},
        {"type": "image", "source": {"type": "base64", "data": url.partition(",")[2]}},
    ):
        assert tokens_of(part) == tokens


def test_images_of_unknown_size_and_of_low_detail_count_a_usual_number():
    url = "https://example.com/a.png"

    assert tokens_of({"type": "image_url", "image_url": {"url": url}}) == 765
    assert tokens_of({"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}) == 765
    assert tokens_of({"type": "image_url", "image_url": {"url": url, "detail": "low"}}) == 85


def test_a_stated_number_counts():
    image = {"type": "image_url", "image_url": {"url": data_url(png(2000, 2000))}}
    media = {"image": 800.0, "audio": 30, "video": 5000, "file": 2}

    assert tokens_of(image, image, media=media) == 1600
    for kind, part in (("audio", "input_audio"), ("video", "video_url"), ("file", "file")):
        assert tokens_of({"type": part, part: {"data": "A" * 400_000}}, media=media) == media[kind]


def test_a_sound_counts_by_its_seconds():
    head = b"RIFF" + bytes(4) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    wave = base64.b64encode(head + bytes(8) + bytes(160_000)).decode()
    packed = base64.b64encode(bytes(160_000)).decode()

    for data in (wave, packed):  # ten seconds
        found = tokens_of({"type": "input_audio", "input_audio": {"data": data, "format": "x"}})
        assert found == pytest.approx(100, rel=0.02)
    assert tokens_of({"type": "audio_url", "audio_url": {"url": "https://a/b.mp3"}}) == 600


@each(
    "part",
    [{"type": "file", "file": {"file_data": "A" * 400_000}}, {"type": "odd", "x": "A" * 400_000}],
)
def test_no_part_counts_by_the_length_of_its_bytes(part: dict[str, Any]):
    assert tokens_of(part) < 2000


def test_messages_without_content_and_with_calls_of_tools_count():
    call = {"id": "1", "type": "function", "function": {"name": "w", "arguments": "{}" * 50}}
    plain = {"messages": [{"role": "assistant"}, {"role": "user", "content": None}]}

    assert estimate(plain)[0] == 0
    assert estimate({"messages": [{"role": "assistant", "tool_calls": [call]}]})[0] > 30
    assert estimate({**plain, "tools": [{"function": {"name": "x" * 350}}]})[0] > 100


def test_texts_count_by_their_bytes_in_every_script():
    assert text_tokens("a" * 35) == 10
    assert text_tokens("日本語の文") == pytest.approx(5, rel=0.2)
    assert text_tokens("\ud800") > 0


def test_the_limit_of_the_reply_counts():
    assert estimate(asked("x", max_tokens=7))[1] == 7
    assert estimate(asked("x", max_completion_tokens=8))[1] == 8
    assert estimate(asked("x"))[1] == 256
    assert estimate({"input": ["a" * 35]})[1] == 0


@each(
    "raw",
    [{}, {"choices": None}, {"choices": "x"}, {"choices": [1]}, {"data": [{"embedding": [1]}]}],
)
def test_a_reply_without_texts_has_no_tokens(raw: dict[str, Any]):
    assert reply_tokens(raw) == 0
