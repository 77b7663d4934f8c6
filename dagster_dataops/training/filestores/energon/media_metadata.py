"""`ImageMetadata`, `AVMetadata`: sizes and durations of media files."""

import io
import logging
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.training.filestores.energon.media_table import MediaFacts

_LOGGER: Final = logging.getLogger(__name__)

IMAGES: Final = frozenset(
    ["bmp", "gif", "ico", "j2k", "jp2", "jpeg", "jpg", "jpx", "png", "tif", "tiff", "webp"]
)
AUDIO_AND_VIDEO: Final = frozenset(
    ["aac", "avi", "flac", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "ogg", "wav", "webm"]
)
MEDIA: Final = IMAGES | AUDIO_AND_VIDEO
"""The suffixes of the files that have metadata."""


@dataclass(frozen=True, kw_only=True)
class ImageMetadata:
    """Facts of an image.

    Attributes:
        width: The width in pixels.
        height: The height in pixels.
        format: The format, as Pillow names it, such as ``JPEG``.
        mode: The mode, as Pillow names it, such as ``RGB``.
    """

    width: int
    height: int
    format: str
    mode: str


@dataclass(frozen=True, kw_only=True)
class AVMetadata:
    """Facts of an audio or video file; ``None`` where the file has no such stream.

    Attributes:
        video_duration: The duration of the first video stream in seconds.
        video_num_frames: The number of its frames.
        video_fps: The number of its frames in a second.
        video_width: The width of a frame in pixels.
        video_height: The height of a frame in pixels.
        audio_duration: The duration of the first audio stream in seconds.
        audio_channels: The number of its channels.
        audio_sample_rate: The number of its samples in a second.
        audio_num_samples: The number of its samples in each channel.
    """

    video_duration: float | None = None
    video_num_frames: int | None = None
    video_fps: float | None = None
    video_width: int | None = None
    video_height: int | None = None
    audio_duration: float | None = None
    audio_channels: int | None = None
    audio_sample_rate: int | None = None
    audio_num_samples: int | None = None


_KINDS: Final[dict[str, Any]] = {"image": ImageMetadata, "av": AVMetadata}


def metadata_of(facts: MediaFacts) -> Any:
    """Return the metadata that a table holds of a file."""
    kind, fields = facts
    if kind not in _KINDS:
        msg = f"the kind of the metadata is {kind!r}; known: {', '.join(_KINDS)}"
        raise ValueError(msg)
    return _KINDS[kind](**fields)


def media_facts(name: str, data: bytes) -> MediaFacts | None:
    """Return the facts of a file, by its suffix; ``None`` if it is damaged or has another suffix.

    Pillow and FFmpeg decode the file in this process.

    A warning in the log names a damaged file.

    Raises:
        MissingExtraError: A package is missing.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in MEDIA:
        return None
    try:
        return _of_image(data) if suffix in IMAGES else _of_av(data)
    except MissingExtraError:
        raise
    except Exception as error:  # noqa: BLE001 - decoders raise anything for damaged files
        _LOGGER.warning("no media metadata of %s, which cannot be decoded: %r", name, error)
        return None


def _of_image(data: bytes) -> MediaFacts:
    try:
        import PIL.Image
    except ImportError:
        raise MissingExtraError("metadata of images", "images") from None
    with PIL.Image.open(io.BytesIO(data)) as image:
        image.load()
        size = {"width": image.width, "height": image.height}
        return "image", {**size, "format": image.format or "UNKNOWN", "mode": image.mode}


def _of_av(data: bytes) -> MediaFacts:
    try:
        import av
    except ImportError:
        raise MissingExtraError("metadata of audio and video", "video") from None
    facts: dict[str, Any] = {}
    with av.open(io.BytesIO(data)) as container:
        if container.streams.video:
            facts |= _of_video(container)
        if container.streams.audio:
            facts |= _of_audio(container)
    return "av", {name: value for name, value in facts.items() if value is not None}


def _of_video(container: Any) -> dict[str, Any]:
    stream = container.streams.video[0]
    packets = [packet for packet in container.demux(video=0) if packet.pts is not None]
    duration = _seconds(stream, packets, stream.start_time or 0)
    rate = stream.average_rate
    fps = float(rate) if rate else (len(packets) / duration if duration else None)
    return {
        "video_duration": duration,
        "video_num_frames": len(packets),
        "video_fps": fps,
        "video_width": stream.width,
        "video_height": stream.height,
    }


def _of_audio(container: Any) -> dict[str, Any]:
    stream = container.streams.audio[0]
    container.seek(0)
    packets = [packet for packet in container.demux(audio=0) if packet.pts is not None]
    container.seek(0)
    return {
        "audio_duration": _seconds(stream, packets),
        "audio_channels": stream.channels,
        "audio_sample_rate": stream.sample_rate,
        "audio_num_samples": sum(frame.samples for frame in container.decode(audio=0)),
    }


def _seconds(stream: Any, packets: list[Any], start: int = 0) -> float | None:
    """Return the duration from a time on, by the header, or else by the last packet."""
    ticks = stream.duration
    if ticks is None and packets and packets[-1].duration is not None:
        ticks = packets[-1].pts + packets[-1].duration
    if ticks is None or stream.time_base is None:
        return None
    return float((ticks - start) * float(stream.time_base))
