"""Images, sounds and films that tests make, and the operators applied to them."""

import io
import math
from pathlib import Path
from typing import Any

import av
import numpy as np
import soundfile
from PIL import Image

from dagster_dataops import Drop


def picture(width: int = 96, height: int = 64, seed: int = 0, mode: str = "RGB") -> Any:
    """Return an image of soft shapes and some noise."""
    random = np.random.default_rng(seed)
    channels = {"L": 1, "RGB": 3, "RGBA": 4}[mode]
    shapes = random.integers(0, 256, (6, 8, channels), dtype=np.uint8).squeeze()
    soft = np.asarray(Image.fromarray(shapes).resize((width, height), Image.Resampling.BICUBIC))
    noise = random.integers(-6, 7, soft.shape)
    return Image.fromarray(np.clip(soft.astype(int) + noise, 0, 255).astype(np.uint8))


def saved(image: Any, form: str, **options: Any) -> bytes:
    written = io.BytesIO()
    image.save(written, form, **options)
    return written.getvalue()


def animation(form: str = "GIF", frames: int = 3) -> bytes:
    first, *others = (picture(seed=number) for number in range(frames))
    return saved(first, form, save_all=True, append_images=others)


def tone(seconds: float = 1.0, rate: int = 16_000, level: float = 0.3, hertz: float = 440) -> Any:
    return level * np.sin(2 * math.pi * hertz * np.arange(round(seconds * rate)) / rate)


def speech(seconds: float = 3.0, rate: int = 16_000, noise: float = 0.003, seed: int = 0) -> Any:
    """Return bursts of sound with pauses, above noise."""
    count = round(seconds * rate)
    loud = (np.arange(count) // round(0.25 * rate)) % 2
    random = np.random.default_rng(seed)
    return tone(seconds, rate, 0.4) * loud + noise * random.standard_normal(count)


def sound(samples: Any, rate: int = 16_000, form: str = "WAV", subtype: str | None = None) -> bytes:
    written = io.BytesIO()
    soundfile.write(written, samples, rate, format=form, subtype=subtype)
    return written.getvalue()


def film(
    form: str = "mp4",
    *,
    codec: str = "mpeg4",
    sound_codec: str | None = "aac",
    seconds: int = 4,
    rate: int = 10,
    sound_rate: int = 16_000,
) -> bytes:
    """Return a film in which each second has another colour, with a sine as its sound."""
    written = io.BytesIO()
    with av.open(written, "w", format=form) as container:
        pictures = container.add_stream(codec, rate=rate)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "yuv420p"
        track = container.add_stream(sound_codec, rate=sound_rate) if sound_codec else None
        if track is not None:
            track.layout = "mono"
        for number in range(seconds * rate):
            pixels = np.full((48, 64, 3), (40 + 70 * (number // rate)) % 256, np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode())
        if track is not None:
            samples = tone(seconds, sound_rate).astype(np.float32)[None]
            frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
            frame.sample_rate = sound_rate
            container.mux(track.encode(frame))
            container.mux(track.encode())
    return written.getvalue()


def stored(folder: Path, name: str, data: bytes) -> dict[str, Any]:
    """Return a record that names a new file."""
    path = folder / name
    path.write_bytes(data)
    return {"file": str(path)}


def opened(record: dict[str, Any]) -> Any:
    return Image.open(io.BytesIO(Path(record["file"]).read_bytes()))


def signals(operator: Any, record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = operator.forward(dict(record))["stats"]
    return found


def reason(operator: Any, record: dict[str, Any]) -> str | None:
    found = operator.forward(dict(record))
    return found.reason if isinstance(found, Drop) else None
