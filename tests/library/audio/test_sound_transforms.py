"""``audio.Resample`` and ``audio.Cut``: samples of soxr, samples as they were."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from dagster_dataops import data
from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from tests.each import each
from tests.library.media import reason, sound, speech, stored, tone


def read(made: File, kind: str = "float64") -> tuple[Any, int, str]:
    with soundfile.SoundFile(io.BytesIO(made.data)) as file:
        return file.read(dtype=kind, always_2d=True), file.samplerate, file.subtype


@pytest.mark.slow
@each("case", [(16_000, 8_000), (44_100, 16_000), (8_000, 48_000), (22_050, 22_050)])
def test_samples_are_resampled_by_soxr(case: tuple[int, int], tmp_path: Path) -> None:
    before, after = case
    samples = speech(2, before)
    record = stored(tmp_path, "a.wav", sound(samples, before, subtype="FLOAT"))
    found, rate, subtype = read(data.audio.Resample(after).forward(record)["file"])

    expected = soxr.resample(samples.astype(np.float32).astype(float), before, after, "HQ")
    assert (rate, subtype) == (after, "PCM_24")
    assert found[:, 0] == pytest.approx(expected, abs=2e-6)


def test_channels_become_their_mean(tmp_path: Path) -> None:
    left, right = tone(0.5), tone(0.5, hertz=600)
    record = stored(tmp_path, "a.flac", sound(np.stack([left, right], 1), form="FLAC"))
    stereo, _, _ = read(data.audio.Resample(8_000, format="wav").forward(dict(record))["file"])
    mono, _, _ = read(data.audio.Resample(8_000, mono=True).forward(dict(record))["file"])

    assert stereo.shape == (4000, 2)
    assert mono == pytest.approx(stereo.mean(axis=1, keepdims=True), abs=1e-4)


def test_loud_samples_are_cut_off_and_do_not_wrap_around(tmp_path: Path) -> None:
    square = np.sign(np.sin(np.arange(8000) / 7))
    record = stored(tmp_path, "a.wav", sound(square, 8_000))
    found, _, _ = read(data.audio.Resample(16_000).forward(record)["file"])

    assert np.abs(np.diff(found[:, 0])).max() < 1.9
    assert found.max() == pytest.approx(1, abs=1e-4)


def test_a_sound_that_fits_keeps_its_file(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.flac", sound(speech(1), form="FLAC"))

    assert data.audio.Resample(16_000, mono=True).forward(dict(record)) == record
    assert isinstance(data.audio.Resample(16_000, format="wav").forward(record)["file"], File)


def test_the_same_sound_has_the_same_bytes(tmp_path: Path) -> None:
    for form, seconds in (("flac", 1), ("wav", 30)):
        record = stored(tmp_path, "a.wav", sound(speech(seconds), subtype="FLOAT"))
        operator = data.audio.Resample(8_000, format=form)
        made = operator.forward(dict(record))["file"]
        assert made.media_type == f"audio/{form}"
        assert made == operator.forward(dict(record))["file"]


@each("mode", ["single", "thread", "process"])
def test_every_mode_stores_the_same_files(mode: str, tmp_path: Path) -> None:
    names = [stored(tmp_path, f"{n}.wav", sound(speech(1, seed=n))) for n in range(3)]
    operator = data.audio.Cut(0.4, _concurrency_mode=mode, _max_workers=2)
    made = Path(operator.set_output(str(tmp_path / mode))(names))
    single = data.audio.Cut(0.4, _concurrency_mode="single")
    expected = Path(single.set_output(str(tmp_path / "expected"))(names))

    assert made.read_bytes() == expected.read_bytes()
    assert made.read_text().count("\n") == 9


# ------------------------------------------------------------ pieces


@each("form", [("WAV", "PCM_16"), ("FLAC", "PCM_24"), ("AIFF", "PCM_16"), ("WAV", "PCM_U8")])
def test_pieces_have_all_samples_as_they_were(form: Any, tmp_path: Path) -> None:
    content = sound(np.stack([speech(2.3), tone(2.3)], 1), 16_000, *form)
    record = {**stored(tmp_path, "a", content), "id": 7}
    for by in ("time", "silence"):
        for target in ("flac", "wav"):
            pieces = data.audio.Cut(0.5, by=by, format=target).forward(dict(record))
            joined = np.concatenate([read(one["file"], "int32")[0] for one in pieces])
            expected, _ = soundfile.read(io.BytesIO(content), dtype="int32", always_2d=True)
            assert np.array_equal(joined, expected)
            assert [one["chunk"] for one in pieces] == list(range(len(pieces)))
            assert pieces[0]["start"] == 0
            assert pieces[-1]["end"] == 2.3
            ends = [one["end"] for one in pieces[:-1]]
            assert ends == [one["start"] for one in pieces[1:]]
            assert all(one["id"] == 7 and one["end"] - one["start"] <= 0.5 for one in pieces)


def test_pieces_by_time_have_the_duration(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.wav", sound(speech(2)))

    pieces = data.audio.Cut(0.75, output_key="piece", index_key=None).forward(record)
    assert [(one["start"], one["end"]) for one in pieces] == [(0, 0.75), (0.75, 1.5), (1.5, 2)]
    assert all(one["file"] == record["file"] and "chunk" not in one for one in pieces)


def test_pieces_end_in_the_pauses(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.wav", sound(speech(4, noise=0.001)))  # each 0.25 s quiet, loud

    pieces = data.audio.Cut(1.0, by="silence").forward(record)
    ends = [one["end"] for one in pieces[:-1]]
    assert ends
    assert all(end % 0.5 < 0.25 for end in ends)


def test_segments_are_cut_out(tmp_path: Path) -> None:
    content = sound(speech(2))
    told = [[0, 0.5], [1.25, 2.0], [0.1, 0.3]]
    record = {**stored(tmp_path, "a.wav", content), "words": told}
    pieces = data.audio.Cut(segments_key="words").forward(record)

    whole, _ = soundfile.read(io.BytesIO(content), dtype="int32", always_2d=True)
    for piece, (start, end) in zip(pieces, told, strict=True):
        samples, _, _ = read(piece["file"], "int32")
        assert np.array_equal(samples, whole[round(start * 16_000) : round(end * 16_000)])
        assert [piece["start"], piece["end"]] == [start, end]


@pytest.mark.parametrize("told", [[[0, 9]], [[1, 1]], [[-1, 1]], [["a", "b"]], [1, 2], None, "ab"])
def test_segments_outside_of_the_sound_are_an_error(told: Any, tmp_path: Path) -> None:
    record = {**stored(tmp_path, "a.wav", sound(speech(2))), "words": told}

    with pytest.raises(FileError, match=r"a\.wav: .*\[start, end\]"):
        data.audio.Cut(segments_key="words").forward(record)


def test_an_empty_sound_has_no_pieces(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.wav", sound(np.zeros(0)))

    for cut in (data.audio.Cut(), data.audio.Cut(by="silence"), data.audio.Cut(segments_key="at")):
        assert reason(cut, {**record, "at": []}) == "no_pieces"


@each("form", ["flac", "wav"])
def test_an_empty_sound_cannot_be_resampled(form: Any, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.wav", sound(np.zeros(0)))

    with pytest.raises(FileError, match=r"a\.wav: has no sound"):
        data.audio.Resample(8_000, format=form).forward(dict(record))
    with pytest.raises(FileError, match=r"a\.wav: has no sound"):
        data.audio.Resample(16_000, format=form).forward(record)


def test_a_damaged_sound_that_fits_is_an_error(tmp_path: Path) -> None:
    whole = bytearray(sound(tone(3.0), form="FLAC"))
    whole[len(whole) // 2] ^= 0xFF
    record = stored(tmp_path, "a.flac", bytes(whole))

    with pytest.raises(FileError, match=r"a\.flac: cannot be decoded"):
        data.audio.Resample(16_000).forward(record)
