"""Operators of films: the values of PyAV, and files that no operator can use."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile
from PIL import Image

from dagster_dataops import data
from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from tests.each import each
from tests.library.media import (
    film,
    picture,
    reason,
    saved,
    signals,
    sound,
    speech,
    stored,
    tone,
)

MP4, MKV, AVI = film(), film("matroska"), film("avi", sound_codec="mp3")
FORMS: dict[str, Callable[[], bytes]] = {
    "a.mp4": lambda: MP4,
    "b.mkv": lambda: MKV,
    "c.avi": lambda: AVI,
    "d.mov": partial(film, "mov"),
    "e.webm": partial(film, "webm", codec="libvpx", sound_codec="libopus", sound_rate=48_000),
    "f.mp4": partial(film, codec="libx264"),
    "g.mpg": partial(film, "mpeg", codec="mpeg1video", sound_codec="mp2", rate=25),
    "h.flv": partial(film, "flv", codec="flv", sound_codec=None),
    "i.mpg": partial(film, "mpeg1video", codec="mpeg1video", sound_codec=None, rate=25),
}
GUESSED = {"g.mpg", "i.mpg"}  # FFmpeg guesses their duration by the bit rate: 2.1 s, 0.0003 s
SILENT = film(sound_codec=None)


def frames(content: bytes) -> list[Any]:
    with av.open(io.BytesIO(content)) as container:
        return list(container.decode(video=0))


@each("name", FORMS)
def test_facts_are_those_of_pyav_or_of_the_packets_where_it_guesses(
    name: str, tmp_path: Path
) -> None:
    content = FORMS[name]()
    record = stored(tmp_path, name, content)
    found = signals(data.video.Check(mode="tag"), record)

    with av.open(io.BytesIO(content)) as container:
        (stream,) = container.streams.video
        told = stream.duration
        seconds = container.duration / 1e6 if told is None else float(told * stream.time_base)
        seconds = pytest.approx(4, abs=0.05) if name in GUESSED else seconds
        assert found == {
            "video_seconds": seconds,
            "video_width": 64,
            "video_height": 48,
            "video_rate": float(stream.average_rate),
            "video_codec": stream.codec_context.codec.canonical_name,
            "video_sound": len(container.streams.audio),
        }
    assert signals(data.video.Duration(mode="tag"), record) == {"video_seconds": seconds}
    assert found["video_seconds"] == pytest.approx(4, abs=0.2)


def test_metadata_in_another_encoding_is_no_fault(tmp_path: Path) -> None:
    content = MKV.replace(b"Lavf", b"\xe9\xe8\xff\x80")
    record = stored(tmp_path, "a.mkv", content)

    assert content != MKV
    assert reason(data.video.Check(), record) is None


@pytest.mark.parametrize(
    ("operator", "options", "said"),
    [
        ("Duration", {"min_seconds": 5}, "low_video_seconds"),
        ("Duration", {"max_seconds": 3.5}, "high_video_seconds"),
        ("Duration", {"min_seconds": 4, "max_seconds": 4}, None),
        ("Check", {"codecs": ["h264"]}, "codec"),
        ("Check", {"codecs": ["mpeg4"]}, None),
        ("Check", {"allow_silent": False}, "silent"),
    ],
)
def test_limits_have_reasons(operator: str, options: Any, said: str | None, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.mp4", SILENT)

    assert reason(getattr(data.video, operator)(**options), record) == said


def live(content: bytes) -> bytes:
    """Return a Matroska file whose segment tells no size, as of a program that streams it."""
    at = content.index(b"\x18S\x80g") + 4
    return content[:at] + b"\x01" + b"\xff" * 7 + content[at + 8 :]


BAD: dict[str, tuple[str, bytes | None, str]] = {
    "missing": ("a.mp4", None, "No such file"),
    "empty": ("a.mp4", b"", "is empty"),
    "the head alone": ("a.mp4", MP4[:60], "is truncated: it declares"),
    "no more than a type": ("a.mp4", MP4[:30], "cannot be read"),
    "half of an MP4": ("a.mp4", MP4[: len(MP4) // 2], "is truncated: it declares"),
    "an MP4 cut off in its index": ("a.mp4", MP4[:-400], "is truncated: it declares"),
    "an MP4 without its last byte": ("a.mp4", MP4[:-1], "is truncated: it declares"),
    "half of a Matroska": ("a.mkv", MKV[: len(MKV) // 2], "is truncated: it declares"),
    "a Matroska without its last byte": ("a.mkv", MKV[:-1], "is truncated: it declares"),
    "half of an AVI": ("a.avi", AVI[: len(AVI) // 2], "is truncated: it declares"),
    "MP4 named AVI": ("a.avi", MP4, "is video/mp4 by its content, video/x-msvideo by its name"),
    "an image": ("a", saved(picture(), "PNG"), "is image/png, no video"),
    "a playlist": ("a", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "is no film or sound by"),
    "a list of files": ("a", b"ffconcat version 1.0\nfile 'b.mp4'\n", "is no film or sound"),
}
DECODED: dict[str, tuple[str, bytes | None, str]] = {
    "half of a live Matroska": (
        "a.mkv",
        live(MKV)[: len(MKV) // 2],
        "is truncated: it declares 4.*and has 2",
    ),
    "too long": ("a.mp4", film(seconds=6), "more than max_seconds=5 seconds"),
}
OPERATORS: dict[str, Callable[[], Any]] = {
    "Duration": lambda: data.video.Duration(min_seconds=0.1),
    "Check": lambda: data.video.Check(max_seconds=5),
    "Frames": lambda: data.video.Frames(max_seconds=5),
    "Audio": lambda: data.video.Audio(max_seconds=5),
}


FLAC, MP3 = sound(speech(3), form="FLAC"), sound(speech(3), form="MP3")
OGG, WITHOUT_COUNT = sound(speech(3), form="OGG"), MP3[MP3.index(MP3[:2], 2) :]
SOUNDS: dict[str, tuple[str, bytes | None, str]] = {
    "half of a FLAC": ("a.flac", FLAC[: len(FLAC) // 2], "48,000 samples are declared"),
    "a FLAC without its last byte": ("a.flac", FLAC[:-1], "its last frame has another checksum"),
    "a FLAC damaged in the middle": (
        "a.flac",
        FLAC[: len(FLAC) // 2] + bytes(200) + FLAC[len(FLAC) // 2 + 200 :],
        r"it declares 48,000 samples, and .* can be decoded|48,000 samples are declared",
    ),
    "half of an MP3": ("a.mp3", MP3[: len(MP3) // 2], "it is truncated: .* bytes of sound"),
    "the last frame of an MP3 cut": ("a.mp3", WITHOUT_COUNT[:-9], "its last frame has"),
    "half of an Ogg": ("a.ogg", OGG[: len(OGG) // 2], "its last page is missing"),
    "a damaged page of an Ogg": ("a.ogg", OGG[:-99] + bytes(9) + OGG[-90:], "another checksum"),
}


@each("case", [("Audio", one) for one in SOUNDS.items()])
def test_a_sound_that_is_not_whole_is_an_error(case: Any, tmp_path: Path) -> None:
    check(*case, tmp_path)


def test_whole_sounds_are_taken(tmp_path: Path) -> None:
    for name, content in {"a.flac": FLAC, "a.mp3": WITHOUT_COUNT, "a.ogg": OGG}.items():
        made = data.video.Audio().forward(stored(tmp_path, name, content))
        assert len(made["audio"].data) > 1000


@each("name", [name for name in OPERATORS if name != "Audio"])
def test_a_sound_is_no_film(name: str, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.flac", FLAC)
    with pytest.raises(FileError) as raised:
        OPERATORS[name]().forward(record)
    said = "is audio/flac, no video file; replace the file, or leave it out"
    assert str(raised.value) == f"{record['file']}: {said}"


@each("case", [(name, one) for name in OPERATORS for one in BAD.items()])
def test_a_bad_file_is_an_error_with_path_and_reason(case: Any, tmp_path: Path) -> None:
    check(*case, tmp_path)


@each("case", [(name, one) for name in ("Check", "Frames", "Audio") for one in DECODED.items()])
def test_what_decoding_finds_is_an_error_with_path_and_reason(case: Any, tmp_path: Path) -> None:
    check(*case, tmp_path)


def check(operator: str, bad: Any, folder: Path) -> None:
    name, content, said = bad[1]
    path = folder / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileError, match=said) as raised:
        OPERATORS[operator]().forward({"file": str(path)})
    assert str(raised.value).startswith(f"{path}: ")
    path.unlink(missing_ok=True)


def test_what_cannot_be_decoded_is_dropped_on_demand(tmp_path: Path) -> None:
    operator = data.video.Check(on_error="drop")

    assert reason(operator, stored(tmp_path, "a.mkv", MKV[: len(MKV) // 2])) == "broken"
    assert reason(operator, stored(tmp_path, "b.mkv", b"")) == "broken"
    assert reason(operator, stored(tmp_path, "c.mkv", MKV)) is None
    with pytest.raises(FileError, match="No such file"):
        operator.forward({"file": str(tmp_path / "none.mkv")})


@each("operator", ["Check", "Frames", "Audio"])
@pytest.mark.slow
def test_damaged_bytes_are_errors_of_their_records(operator: str, tmp_path: Path) -> None:
    random = np.random.default_rng(len(operator))
    records = [{**stored(tmp_path, "good", MP4), "id": -1}]
    for number in range(45):
        content = bytearray((MP4, MKV, AVI)[number % 3])
        for place in random.integers(0, len(content), 1 + number).tolist():
            content[place] = random.integers(0, 256)
        records.append({**stored(tmp_path, str(number), bytes(content)), "id": number})
    folder = tmp_path / operator
    # A decoder may crash: it costs its record, and none of the others.
    made = getattr(data.video, operator)(_concurrency_mode="process", _max_workers=2)
    result = Path(made.set_output(str(folder))([*records, records[0]]))

    assert result.read_text().count('"id":-1') == (8 if operator == "Frames" else 2)
    errors = next(tmp_path.rglob(f"{operator}_error.jsonl"))
    assert "FileError" in errors.read_text()


# ------------------------------------------------------------ pictures


def pixels(made: File) -> Any:
    return np.asarray(Image.open(io.BytesIO(made.data)))


@each("case", [("a.mp4", 1.0, [0, 10, 20, 30]), ("b.mkv", 1.5, [0, 15, 30]), ("f.mp4", 9.0, [0])])
def test_pictures_are_those_of_pyav_at_the_times(case: Any, tmp_path: Path) -> None:
    name, seconds, numbers = case
    record = {**stored(tmp_path, name, FORMS[name]()), "id": 5}
    found = data.video.Frames(seconds=seconds, format="png").forward(record)

    all_frames = frames(FORMS[name]())
    assert [one["frame_time"] for one in found] == pytest.approx([n / 10 for n in numbers])
    assert [one["frame_number"] for one in found] == list(range(len(numbers)))
    for one, number in zip(found, numbers, strict=True):
        assert np.array_equal(pixels(one["frame"]), np.asarray(all_frames[number].to_image()))
        assert (one["id"], one["file"]) == (5, record["file"])


def test_every_picture_can_be_taken(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.mp4", MP4)

    assert len(data.video.Frames(seconds=0.01).forward(dict(record))) == 40
    with pytest.raises(FileError, match="more than max_frames=39 pictures"):
        data.video.Frames(seconds=0.01, max_frames=39).forward(record)


@each("name", ["a.mp4", "b.mkv", "f.mp4"])
def test_scenes_begin_where_pictures_change(name: str, tmp_path: Path) -> None:
    record = stored(tmp_path, name, FORMS[name]())
    found = data.video.Frames(by="scene", threshold=0.1, index_key=None).forward(record)

    assert [one["frame_time"] for one in found] == pytest.approx([0, 1, 2, 3])
    assert "frame_number" not in found[0]
    one_scene = data.video.Frames(by="scene", threshold=0.9).forward(record)
    assert [one["frame_time"] for one in one_scene] == [0]


def test_the_same_film_has_the_same_bytes(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.mp4", MP4)
    for operator in (data.video.Frames(), data.video.Frames(by="scene", format="png")):
        assert operator.forward(dict(record)) == operator.forward(dict(record))
    assert data.video.Frames().forward(record)[0]["frame"].media_type == "image/jpeg"


# ------------------------------------------------------------ sound


@each("name", ["a.mp4", "b.mkv", "c.avi", "d.mov", "e.webm", "g.mpg"])
@pytest.mark.slow
def test_sound_is_that_of_pyav(name: str, tmp_path: Path) -> None:
    record = stored(tmp_path, name, FORMS[name]())
    made = data.video.Audio(format="wav").forward(record)["audio"]
    samples, rate = soundfile.read(io.BytesIO(made.data))

    with av.open(io.BytesIO(FORMS[name]())) as container:
        parts = [frame.to_ndarray() for frame in container.decode(audio=0)]
    expected = np.concatenate([part.reshape(-1) for part in parts])
    scale = 32768 if expected.dtype == np.int16 else 1
    assert (rate, made.media_type) == (48_000 if name == "e.webm" else 16_000, "audio/wav")
    clipped = np.clip(expected / scale, -1, 1 - 2**-15)
    np.testing.assert_allclose(samples, clipped, rtol=0, atol=2**-16 + 1e-9)


def test_sounds_in_other_formats_are_read(tmp_path: Path) -> None:
    content = sound(speech(1), form="FLAC", subtype="PCM_24")
    made = data.video.Audio().forward(stored(tmp_path, "a.flac", content))["audio"]

    ours, theirs = (soundfile.read(io.BytesIO(one), dtype="int32") for one in (made.data, content))
    assert np.array_equal(ours[0], theirs[0])
    assert soundfile.info(io.BytesIO(made.data)).subtype == "PCM_24"


def test_a_film_without_sound_is_an_error_or_dropped(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.mp4", SILENT)

    with pytest.raises(FileError, match="a.mp4: has no audio track"):
        data.video.Audio().forward(dict(record))
    assert reason(data.video.Audio(missing="drop"), record) == "no_audio"


@each("mode", ["single", "process"])
def test_every_mode_stores_the_same_files(mode: str, tmp_path: Path) -> None:
    names = [stored(tmp_path, name, FORMS[name]()) for name in ("a.mp4", "b.mkv", "c.avi")]
    for operator in (data.video.Frames, data.video.Audio):
        folder = tmp_path / mode / operator.__name__
        made = operator(_concurrency_mode=mode, _max_workers=2).set_output(str(folder))(names)
        expected = [
            record
            for name in names
            for record in [operator().forward(dict(name))]
            for record in (record if isinstance(record, list) else [record])
        ]
        assert Path(made).read_text().count('"digest":"sha256:') == len(expected)


@each("name", ["a.mp4", "a.mkv", "a.avi"])
def test_bytes_behind_a_film_are_no_error(name: str, tmp_path: Path) -> None:
    content = {"a.mp4": MP4, "a.mkv": MKV, "a.avi": AVI}[name]
    record = stored(tmp_path, name, content + b"a few bytes of another program" * 9)

    assert reason(data.video.Check(), record) is None


def test_a_film_that_ends_with_its_file_is_read(tmp_path: Path) -> None:
    at = MP4.index(b"mdat") - 4
    parts = MP4[:at], MP4[at:]
    assert reason(data.video.Check(), stored(tmp_path, "live.mkv", live(MKV))) is None
    first, second = int.from_bytes(parts[1][:4], "big"), MP4[at:]
    index = second[first:]
    whole = parts[0] + bytes(4) + second[4:first]  # without its index
    with pytest.raises(FileError, match="cannot be read"):
        data.video.Check().forward(stored(tmp_path, "a.mp4", whole))
    assert index[4:8] == b"moov"


def test_a_damaged_clock_is_an_error(tmp_path: Path) -> None:
    at = MP4.index(b"mdhd") + 16  # the ticks of a second, and of the film
    damaged = MP4[:at] + b"\xff" * 8 + MP4[at + 8 :]

    for operator in (data.video.Duration(min_seconds=0), data.video.Check()):
        with pytest.raises(FileError, match=r"declares 40 pictures in .* seconds"):
            operator.forward(stored(tmp_path, "a.mp4", damaged))


def test_a_sound_that_is_cut_off_has_no_audio(tmp_path: Path) -> None:
    content = sound(tone(2))
    told = content[:40] + (1 << 30).to_bytes(4, "little") + content[44:]
    for name, cut in {"a.wav": content[:-9], "b.wav": told}.items():
        with pytest.raises(FileError, match="is truncated"):
            data.video.Audio().forward(stored(tmp_path, name, cut))
