"""Estimate the tokens of images, sounds and files in a request: never by the length of their bytes.

Images count as OpenAI counts them: 85 tokens, and 170 for each tile of 512 by 512 pixels after the
image was made to fit into 2,048 by 2,048 and its shorter side reduced to 768. Sounds count 10
tokens a second. Vendors differ; ``media_tokens`` of the client states other numbers.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.models.replies.image_sizes import image_size

KINDS: Final = ("image", "audio", "video", "file")
_OTHER: Final = 1000.0  # tokens of a video or a file
_OF_TYPE: Final = (("image", "image"), ("audio", "audio"), ("video", "video"))
_FILES: Final = frozenset({"file", "input_file", "document"})
_TEXTS: Final = ("url", "data", "file_data", "base64", "b64_json")  # keys of the content
_PLACES: Final = ("image_url", "input_audio", "audio_url", "source", "image", "audio", "file")
_BASE: Final = 85.0
_TILE: Final = 170.0
_TILE_PIXELS: Final = 512
_LONGER: Final = 2048
_SHORTER: Final = 768
_USUAL_SIZE: Final = (1024, 1024)  # of an image whose size is not known
_TOKENS_A_SECOND: Final = 10.0
_BYTES_A_SECOND: Final = 16_000.0  # of compressed sound: 128 kbit/s
_USUAL_SECONDS: Final = 60.0  # of a sound at a URL
_HEAD: Final = 1 << 16  # bytes of an image that are looked at for its size
_WAVE_HEAD: Final = 44


def media_kind(part: Mapping[str, Any]) -> str:
    """Return ``image``, ``audio``, ``video`` or ``file``; empty for another part of a message."""
    name = part.get("type")
    if not isinstance(name, str):
        return ""
    if name in _FILES:
        return "file"
    return next((kind for word, kind in _OF_TYPE if word in name), "")


def media_tokens(part: Mapping[str, Any], kind: str, stated: Mapping[str, float]) -> float:
    """Return about how many tokens a part of a message counts, by its `media_kind`.

    A number for this kind in ``stated``, which the user gives, is used as it is.
    """
    if kind in stated:
        return float(stated[kind])
    if kind == "image":
        return _image_tokens(part)
    return _audio_tokens(part) if kind == "audio" else _OTHER


def _image_tokens(part: Mapping[str, Any]) -> float:
    place = part.get("image_url")
    detail = place.get("detail") if isinstance(place, Mapping) else part.get("detail")
    if detail == "low":
        return _BASE
    width, height = image_size(_bytes_of(part, _HEAD)) or _USUAL_SIZE
    scale = min(1.0, _LONGER / max(width, height))
    scale = min(scale, _SHORTER / min(width, height))
    tiles = math.ceil(width * scale / _TILE_PIXELS) * math.ceil(height * scale / _TILE_PIXELS)
    return _BASE + _TILE * tiles


def _audio_tokens(part: Mapping[str, Any]) -> float:
    size = len(_payload(part)) * 3 // 4
    if not size:
        return _USUAL_SECONDS * _TOKENS_A_SECOND
    head = _bytes_of(part, _WAVE_HEAD)
    rate = int.from_bytes(head[28:32], "little") if head[:4] == b"RIFF" else 0
    return sound_tokens(size, rate)


def sound_tokens(size: int, bytes_a_second: float = 0.0) -> float:
    """Return about how many tokens a sound of ``size`` bytes counts; 0 for an unknown rate."""
    return max(1.0, size / (bytes_a_second or _BYTES_A_SECOND) * _TOKENS_A_SECOND)


def _bytes_of(part: Mapping[str, Any], most: int) -> bytes:
    """Return the first bytes of the content of a part; empty if it is at a URL."""
    text = _payload(part)[: 4 * ((most + 2) // 3)]
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _payload(part: Mapping[str, Any]) -> str:
    """Return the base64 text of a part; empty if its content is at a URL."""
    holders = [part, *(part[name] for name in _PLACES if name in part)]
    texts = [holder for holder in holders if isinstance(holder, str)]
    for holder in holders:
        if isinstance(holder, Mapping):
            texts += [holder[name] for name in _TEXTS if isinstance(holder.get(name), str)]
    for text in texts:
        if text and "://" not in text[:12]:
            head, mark, _ = text[:200].partition("base64,")
            return text[len(head) + len(mark) :] if mark else text
    return ""
