"""Operators that read the heads of large files: how much they fetch, and what they find."""

import tarfile
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
from PIL import Image, ImageOps

from dagster_dataops import config, data
from dagster_dataops.errors import FileError
from tests.each import each
from tests.library.media import signals
from tests.streams.serving import served

SIDE, SECONDS, RATE = 1000, 40, 44_100


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("large")
    noise = np.random.default_rng(0)
    picture = Image.fromarray(noise.integers(0, 256, (SIDE, 2 * SIDE, 3), np.uint8))
    turned = Image.Exif()
    turned[0x0112] = 6
    picture.save(folder / "a.jpg", quality=95, exif=turned)
    picture.save(folder / "a.png", compress_level=0)
    picture.save(folder / "turned.png", compress_level=0, exif=turned)
    picture.save(folder / "a.tif")
    picture.save(folder / "a.bmp")
    picture.save(folder / "a.webp", quality=90, method=0)
    picture.save(folder / "turned.webp", quality=90, method=0, exif=turned)
    for number in range(1, 9):
        turned[0x0112] = number
        shown = picture if number in {1, 6} else picture.crop((0, 0, 600, 400))
        shown.save(folder / f"turned{number}.avif", quality=85, speed=10, exif=turned)
    xmp = b'<x tiff:Orientation="6"/>'
    picture.save(folder / "xmp.avif", quality=85, speed=10, xmp=xmp)
    part = picture.crop((0, 0, 900, 700))
    part.save(folder / "exact.webp", lossless=True, quality=0, method=0)
    sound = noise.uniform(-0.9, 0.9, (SECONDS * RATE, 2))
    for name in ("a.wav", "a.flac", "a.aiff"):
        soundfile.write(folder / name, sound, RATE)
    with soundfile.SoundFile(folder / "a.ogg", "w", RATE, 2) as file:
        for _ in range(3):
            file.write(sound)
    for name in ("a.mp4", "a.mkv", "a.avi"):
        _write_film(folder / name, noise)
    with tarfile.open(folder / "shard.tar", "w") as tar:
        tar.add(folder / "a.wav", "1.wav")
    _move_exif_behind_pixels(folder / "turned.png")
    return folder


def _write_film(path: Path, noise) -> None:
    with av.open(str(path), "w") as film:
        stream = film.add_stream("mpeg4", rate=25, options={"qmin": "1", "qmax": "2"})
        stream.width, stream.height, stream.bit_rate = 320, 240, 50_000_000
        for _ in range(50):
            picture = noise.integers(0, 256, (240, 320, 3), np.uint8)
            film.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        film.mux(stream.encode(None))


def _move_exif_behind_pixels(path: Path) -> None:
    data = path.read_bytes()
    at = data.index(b"eXIf") - 4
    size = int.from_bytes(data[at : at + 4], "big") + 12
    chunk, others = data[at : at + size], data[:at] + data[at + size :]
    path.write_bytes(others[:-12] + chunk + others[-12:])


@each(
    "case",
    [
        ("a.jpg", data.images.Size, {"image_width": SIDE, "image_height": 2 * SIDE}, 0.2),
        ("a.png", data.images.Size, {"image_width": 2 * SIDE, "image_height": SIDE}, 0.1),
        ("a.tif", data.images.AspectRatio, {"image_aspect_ratio": 2.0}, 0.1),
        ("a.bmp", data.images.AspectRatio, {"image_aspect_ratio": 2.0}, 0.1),
        ("a.webp", data.images.Size, {"image_width": 2 * SIDE, "image_height": SIDE}, 0.1),
        ("exact.webp", data.images.Size, {"image_width": 900, "image_height": 700}, 0.1),
        ("turned.webp", data.images.Size, {"image_width": SIDE, "image_height": 2 * SIDE}, 0.15),
        ("turned1.avif", data.images.Size, {"image_width": 2 * SIDE, "image_height": SIDE}, 0.1),
        ("turned6.avif", data.images.Size, {"image_width": SIDE, "image_height": 2 * SIDE}, 0.1),
        ("xmp.avif", data.images.Size, {"image_width": SIDE, "image_height": 2 * SIDE}, 1.2),
        ("turned.png", data.images.Size, {"image_width": SIDE, "image_height": 2 * SIDE}, 1.2),
        ("a.wav", data.audio.Duration, {"audio_seconds": SECONDS}, 0.1),
        ("a.aiff", data.audio.SampleRate, {"audio_rate": RATE}, 0.1),
        ("a.flac", data.audio.Duration, {"audio_seconds": SECONDS}, 0.1),
        ("a.ogg", data.audio.Duration, {"audio_seconds": 3 * SECONDS}, 0.5),
        ("a.mp4", data.video.Duration, {"video_seconds": 2.0}, 0.15),
        ("a.mkv", data.video.Duration, {"video_seconds": 2.0}, 0.15),
        ("a.avi", data.video.Duration, {"video_seconds": 2.0}, 0.3),
    ],
)
def test_the_head_of_a_large_file_is_read_without_the_rest(folder: Path, case) -> None:
    name, operator, told, most = case
    size = (folder / name.partition("#")[0]).stat().st_size
    with served(folder, ranges=True) as server:
        found = signals(operator(mode="tag"), {"file": f"{server.url}/{name}"})
        assert {name: found[name] for name in told} == pytest.approx(told)
        assert size > 1 << 20
        assert server.sent <= most * size


@each("number", range(1, 9))
@pytest.mark.slow
def test_the_size_of_an_avif_image_is_that_of_pillow(folder: Path, number: int) -> None:
    path = folder / f"turned{number}.avif"
    found = signals(data.images.Size(mode="tag"), {"file": str(path)})
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image).size
    assert (found["image_width"], found["image_height"]) == upright


@each("case", [("turned1.avif", -1), ("a.webp", -100)])
def test_a_large_image_that_is_cut_off_is_an_error(folder: Path, tmp_path: Path, case) -> None:
    name, end = case
    (tmp_path / name).write_bytes((folder / name).read_bytes()[:end])
    with pytest.raises(FileError, match=rf"{name}: cannot be read: it is truncated: it declares"):
        data.images.Size(min_width=1).forward({"file": str(tmp_path / name)})


def test_the_head_of_a_large_file_in_a_tar_is_read_without_the_rest(folder: Path) -> None:
    with served(folder, ranges=True) as server:
        record = {"file": f"{server.url}/shard.tar#1.wav"}
        assert signals(data.audio.SampleRate(mode="tag"), record) == {"audio_rate": RATE}
        indexed = server.sent
        assert signals(data.audio.SampleRate(mode="tag"), record) == {"audio_rate": RATE}
        assert server.sent - indexed < 1 << 17


def test_a_server_without_ranges_sends_the_file(folder: Path) -> None:
    with served(folder, ranges=False) as server:
        for name in ("a.png", "a.wav"):
            record = {"file": f"{server.url}/{name}"}
            operator = data.images.Size if name == "a.png" else data.audio.SampleRate
            assert signals(operator(mode="tag"), record)


@each("told", [{"size": 5}, {"version": "reported:other"}])
def test_a_large_file_that_is_another_one_is_an_error(folder: Path, told) -> None:
    with (
        served(folder, ranges=True) as server,
        pytest.raises(FileError, match="has the version|has 6,003,000 bytes"),
    ):
        signals(data.images.Size(mode="tag"), {"file": {"file": f"{server.url}/a.png", **told}})


@pytest.mark.slow
def test_a_large_file_that_cannot_be_read_further_is_an_error_of_the_server(folder: Path) -> None:
    with served(folder, ranges=True) as server:
        record = {"file": f"{server.url}/a.ogg"}
        server.cuts = [100] * 100
        with pytest.raises(FileError, match="cannot be read"):
            signals(data.audio.Duration(mode="tag"), record)


def test_a_file_is_fetched_once_into_the_folder_for_files(folder: Path, tmp_path: Path) -> None:
    with served(folder, ranges=True) as server, config.temporary(file_cache=tmp_path / "files"):
        record = {"file": f"{server.url}/a.jpg"}
        size = (folder / "a.jpg").stat().st_size
        first = signals(data.images.Brightness(mode="tag"), record)
        assert server.sent == size
        assert signals(data.images.Brightness(mode="tag"), record) == first
        assert signals(data.images.Size(mode="tag"), record)["image_width"] == SIDE
        assert server.sent == size
