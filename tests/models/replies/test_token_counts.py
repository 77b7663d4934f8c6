"""Tokens: as a server counts them, and as they are estimated before a call."""

import base64
import struct
from typing import Any

import pytest

from dagster_dataops.models.replies.image_sizes import image_size
from dagster_dataops.models.replies.token_estimates import estimate, reply_tokens, text_tokens
from dagster_dataops.models.replies.usage import Usage, counted_usage, token_count, usage_of
from tests.each import each

TEXT: dict[str, Any] = {"choices": [{"message": {"content": "Paris is the capital."}}]}


@pytest.mark.parametrize("usage", [None, "x", [], {}, 7])
def test_a_server_may_report_no_tokens(usage: Any):
    assert usage_of({"usage": usage}) is None


@each(
    "case",
    [
        (3, 3),
        (3.0, 3),
        ("3", 3),
        (" 3.0 ", 3),
        (0, 0),
        (1_000_000_000, 1_000_000_000),
        *[(odd, None) for odd in (-1, "-1", float("nan"), float("inf"), "nan", "1e400", 1e18)],
        *[(odd, None) for odd in (10**30, "x", "", "1,234", None, True, [3], {"n": 3}, "9" * 500)],
    ],
)
def test_a_number_of_tokens_is_a_whole_number_in_a_sane_range(case: tuple[Any, int | None]):
    given, wanted = case

    assert token_count(given) == wanted


@each(
    "reported",
    [
        {"usage": {"prompt_tokens": 10, "completion_tokens": 5}},
        {"usage": {"prompt_tokens": 10.0, "completion_tokens": "5"}},
        {"usage": {"prompt_tokens": 10, "total_tokens": 15}},
        {"usage": {"input_tokens": 10, "output_tokens": 5}},
        {"usage": {"inputTokens": 10, "outputTokens": 5}},
        {"usage": {"tokens": {"input_tokens": 10, "output_tokens": 5}}},
        {"usage": {"billed_units": {"input_tokens": 10, "output_tokens": 5}}},
        {"meta": {"billed_units": {"input_tokens": 10, "output_tokens": 5}}},
        {"prompt_eval_count": 10, "eval_count": 5},
        {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}},
        {"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 5}},
        {"timings": {"prompt_n": 10, "predicted_n": 5}},
        {"usage": {}, "timings": {"prompt_n": 10, "predicted_n": 5}},
        {"token_usage": {"prompt_tokens": 10, "completion_tokens": 5}},
    ],
)
def test_other_names_and_forms_of_numbers_are_read(reported: dict[str, Any]):
    assert usage_of(TEXT | reported) == Usage(tokens_in=10, tokens_out=5)
    assert counted_usage(TEXT | reported).estimated is None


def test_cached_tokens_and_those_of_reasoning_are_read_by_the_names_of_each_vendor():
    openai = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    deepseek = {"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 5}
    anthropic = {"input_tokens": 4, "cache_read_input_tokens": 4, "output_tokens": 5}
    anthropic["cache_creation_input_tokens"] = 2
    gemini = {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
    gemini["cachedContentTokenCount"] = 4

    assert usage_of(TEXT | {"usage": openai}) == Usage(10, 4, 5, 2)
    assert usage_of(TEXT | {"usage": deepseek}) == Usage(10, 4, 5, 0)
    assert usage_of(TEXT | {"usage": anthropic}) == Usage(10, 4, 5, 0)
    assert usage_of(TEXT | {"usageMetadata": gemini}) == Usage(10, 4, 5, 2)


def test_more_cached_tokens_than_tokens_are_none():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 11}

    assert usage_of(TEXT | {"usage": usage}) == Usage(10, 0, 5, 0)


@each(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": -10, "completion_tokens": -5},
        {"prompt_tokens": "?", "completion_tokens": None},
        {"total_tokens": 15},
    ],
)
def test_unknown_tokens_are_estimated_from_request_and_text(usage: Any):
    counted = counted_usage(TEXT | {"usage": usage}, 7.0)

    assert counted.usage == Usage(tokens_in=7, tokens_out=6)
    assert counted.estimated == (7, 6)


def test_only_the_unknown_side_is_estimated():
    one = counted_usage(TEXT | {"usage": {"prompt_tokens": 10, "completion_tokens": 0}}, 7.0)
    other = counted_usage(TEXT | {"usage": {"completion_tokens": 5}}, 7.0)

    assert (one.usage, one.estimated) == (Usage(10, 0, 6, 0), (0, 6))
    assert (other.usage, other.estimated) == (Usage(7, 0, 5, 0), (7, 0))


def test_no_tokens_of_a_reply_without_a_text_are_known():
    empty = {"choices": [{"message": {"content": ""}}]}
    usage = {"usage": {"prompt_tokens": 10, "completion_tokens": 0}}

    assert counted_usage(empty | usage).estimated is None


def test_reasoning_and_calls_of_tools_count_in_an_estimate():
    call = {"function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "reasoning_content": "x" * 35, "tool_calls": [call]}

    assert counted_usage({"choices": [{"message": message}]}).usage.tokens_out > 15


def test_an_earlier_estimate_counts():
    counted = counted_usage({"usage": {"prompt_tokens": 10}}, estimated=(0, 4))

    assert counted.usage == Usage(tokens_in=10, tokens_out=4)


def test_vectors_have_tokens_of_the_request_alone():
    vectors = {"data": [{"index": 0, "embedding": [1.0]}]}

    assert usage_of(vectors | {"usage": {"total_tokens": 4}}) == Usage(tokens_in=4)
    assert counted_usage(vectors, 3.0).estimated == (3, 0)
    assert counted_usage(vectors | {"usage": {"prompt_tokens": 4}}, 3.0).estimated is None


def test_a_usage_is_reported_as_it_is_read():
    usage = Usage(10, 4, 5, 2)

    assert usage_of({"usage": usage.reported()}) == usage


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
