"""``audio.Check``, and files that no operator can use."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, FileError
from tests.each import each
from tests.library.media import picture, reason, saved, signals, sound, speech, stored

WAV = sound(speech(1))
FLAC = sound(speech(1), form="FLAC")
OGG = sound(speech(1), form="OGG")
MP3 = sound(speech(1), form="MP3")
AIFF = sound(speech(1), form="AIFF")
BAD: dict[str, tuple[str, bytes | None, str]] = {
    "missing": ("a.wav", None, "No such file"),
    "empty": ("a.wav", b"", "is empty"),
    "the head alone": ("a.wav", WAV[:20], "cannot be read"),
    "WAV named MP3": ("a.mp3", WAV, "is audio/wav by its content, audio/mpeg by its name"),
    "an image": ("a", saved(picture(), "PNG"), "is image/png, no audio file"),
    "text": ("a", b"no sound at all", "it is no sound in WAV, FLAC"),
    "another format": ("a", sound(speech(1), form="AU"), "has the format AU, not WAV"),
    "truncated WAV": ("a.wav", WAV[:-2], "it is truncated: 32,000 bytes of sound are declared"),
    "a rate that is none": (
        "a.wav",
        WAV[:24] + b"\xff\xff\xff\x7f" + WAV[28:],
        "tells 2,147,483,647",
    ),
    "truncated AIFF": ("a.aiff", AIFF[:-2], "it is truncated"),
    "truncated Ogg": ("a.ogg", OGG[:-2], "its last page is missing"),
    "an MP3 of a head alone": ("a.mp3", MP3[:64] + bytes(range(256)) * 20, "no frame was found"),
    "half of an Ogg": ("a.ogg", OGG[: len(OGG) // 2], "cannot be read"),
}
WITHOUT_COUNT = MP3[MP3.index(MP3[:2], 2) :]
DECODED: dict[str, tuple[str, bytes | None, str]] = {
    "truncated FLAC": ("a.flac", FLAC[: len(FLAC) // 2], "is truncated or damaged: 16,000 samples"),
    "half of an MP3": ("a.mp3", MP3[: len(MP3) // 2], "it is truncated: .* bytes of sound"),
    "the last frame of an MP3 cut": ("a.mp3", WITHOUT_COUNT[:-9], "its last frame has"),
    "a FLAC without its last byte": ("a.flac", FLAC[:-1], "its last frame has another checksum"),
    "a damaged page of an Ogg": ("a.ogg", OGG[:-99] + bytes(9) + OGG[-90:], "another checksum"),
    "not a number": (
        "a.wav",
        sound(np.array([0.1, np.nan] * 999), subtype="FLOAT"),
        "not a number",
    ),
    "infinite": ("a.wav", sound(np.array([0.1, -np.inf] * 999), subtype="DOUBLE"), "are infinite"),
    "too long": ("a.wav", sound(np.zeros(200), 10), "more than max_seconds=10 seconds"),
}
OPERATORS: dict[str, Callable[[], Any]] = {
    "Duration": lambda: data.audio.Duration(min_seconds=0.1),
    "SampleRate": data.audio.SampleRate,
    "Check": lambda: data.audio.Check(max_seconds=10),
    "Silence": lambda: data.audio.Silence(max_seconds=10),
    "Loudness": lambda: data.audio.Loudness(max_seconds=10),
    "SNR": lambda: data.audio.SNR(max_seconds=10),
    "Resample": lambda: data.audio.Resample(8_000, max_seconds=10),
    "Cut": lambda: data.audio.Cut(max_seconds=10),
}
HEADS = {"Duration", "SampleRate"}  # read no more than the head


@each(
    "case",
    [
        (name, bad)
        for name in OPERATORS
        for bad in (BAD if name in HEADS else {**BAD, **DECODED}).items()
    ],
)
def test_a_bad_file_is_an_error_with_path_and_reason(case: Any, tmp_path: Path) -> None:
    operator, (_, (name, content, said)) = OPERATORS[case[0]](), case[1]
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(FileError, match=said) as raised:
        operator.forward({"file": str(path)})
    assert str(raised.value).startswith(f"{path}: ")
    path.unlink(missing_ok=True)


def test_a_size_that_a_program_could_not_know_is_none(tmp_path: Path) -> None:
    at = WAV.index(b"data") + 4
    record = stored(tmp_path, "a.wav", WAV[:at] + b"\xff\xff\xff\xff" + WAV[at + 4 :])

    assert signals(data.audio.Check(mode="tag"), record)["audio_seconds"] == 1


def test_a_rate_that_a_format_cannot_have_is_an_error(tmp_path: Path) -> None:
    content = WAV[:24] + (700_000).to_bytes(4, "little") + WAV[28:]
    record = stored(tmp_path, "a.wav", content)

    assert len(data.audio.Cut(format="wav").forward(dict(record))) == 1
    with pytest.raises(FileError, match=r"a\.wav: cannot be written as flac: .*sample rate"):
        data.audio.Cut(format="flac").forward(record)


def test_signals_tell_what_the_file_is(tmp_path: Path) -> None:
    stereo = np.zeros((4410, 2))
    record = stored(tmp_path, "a.flac", sound(stereo, 44_100, "FLAC"))

    assert signals(data.audio.Check(mode="tag"), record) == {
        "audio_format": "FLAC",
        "audio_seconds": 0.1,
        "audio_rate": 44_100,
        "audio_channels": 2,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, None),
        ({"formats": ["FLAC"]}, "format"),
        ({"min_channels": 2}, "low_audio_channels"),
        ({"max_channels": 1}, None),
        ({"formats": ["WAV"], "min_channels": 1}, None),
    ],
)
def test_formats_and_channels_have_reasons(options: Any, said: str | None, tmp_path: Path) -> None:
    assert reason(data.audio.Check(**options), stored(tmp_path, "a.wav", WAV)) == said


def test_what_cannot_be_decoded_is_dropped_on_demand(tmp_path: Path) -> None:
    operator = data.audio.Check(on_error="drop")

    for name, content in (("a.wav", WAV[:-2]), ("b.flac", FLAC[:-9]), ("c.wav", sound([]))):
        assert reason(operator, stored(tmp_path, name, content)) == "broken"
    assert reason(operator, stored(tmp_path, "d.mp3", MP3)) is None
    with pytest.raises(FileError, match="No such file"):
        operator.forward({"file": str(tmp_path / "none.wav")})
    with pytest.raises(DefinitionError, match="formats is 'wav'"):
        data.audio.Check(formats=["wav"])


def estimated_mp3() -> bytes:
    """Return an MP3 file that tells no number of frames, and begins with a short one."""
    written = io.BytesIO()
    with av.open(written, "w", format="mp3", options={"write_xing": "0"}) as container:
        track = container.add_stream("libmp3lame", rate=22_050)
        track.layout, track.bit_rate = "mono", 64_000
        samples = speech(1.2, 22_050).astype(np.float32)[None]
        frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
        frame.sample_rate = 22_050
        container.mux(track.encode(frame))
        container.mux(track.encode())
    return written.getvalue()


def test_a_sound_whose_frames_are_only_estimated_is_whole(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.mp3", estimated_mp3())
    frames = len(soundfile.read(record["file"])[0])
    assert soundfile.info(record["file"]).frames > frames

    assert signals(data.audio.Check(mode="tag"), record)["audio_seconds"] == frames / 22_050
    pieces = data.audio.Cut(0.5).forward(dict(record))
    assert pieces[-1]["end"] == frames / 22_050
    cut = data.audio.Cut(segments_key="at")
    (piece,) = cut.forward({**record, "at": [[1.0, frames / 22_050]]})
    assert len(soundfile.read(io.BytesIO(piece["file"].data))[0]) == frames - 22_050
    with pytest.raises(FileError, match=r"no \[start, end\] inside of"):
        cut.forward({**record, "at": [[1.0, frames / 22_050 + 0.001]]})
    assert data.audio.Resample(8_000).forward(dict(record))["file"].media_type == "audio/flac"
