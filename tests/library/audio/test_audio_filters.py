"""Numbers of sounds: those of soundfile, of the standard, and of FFmpeg."""

import io
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile

from dagster_dataops import data
from dagster_dataops.errors import FileError
from tests.each import each
from tests.library.media import reason, signals, sound, speech, stored, tone

FORMS = [
    ("WAV", "PCM_16"),
    ("WAV", "PCM_24"),
    ("WAV", "FLOAT"),
    ("WAV", "PCM_U8"),
    ("FLAC", "PCM_16"),
    ("OGG", "VORBIS"),
    ("OGG", "OPUS"),
    ("MP3", "MPEG_LAYER_III"),
    ("AIFF", "PCM_16"),
]


def tagged(name: str, record: dict[str, Any], **options: Any) -> float:
    (found,) = signals(getattr(data.audio, name)(mode="tag", **options), record).values()
    return float(found)


@each("form", FORMS)
def test_duration_and_rate_are_those_of_soundfile(form: Any, tmp_path: Path) -> None:
    content = sound(speech(1.37), 16_000, *form)
    record = stored(tmp_path, "a", content)
    info = soundfile.info(io.BytesIO(content))

    assert tagged("Duration", record) == info.duration == pytest.approx(1.37)
    assert tagged("SampleRate", record) == info.samplerate == 16_000


@pytest.mark.parametrize(
    ("operator", "options", "said"),
    [
        ("Duration", {"min_seconds": 2.5}, "low_audio_seconds"),
        ("Duration", {"max_seconds": 1.5}, "high_audio_seconds"),
        ("Duration", {"min_seconds": 2, "max_seconds": 2}, None),
        ("SampleRate", {"min_rate": 22_050}, "low_audio_rate"),
        ("SampleRate", {"max_rate": 8_000}, "high_audio_rate"),
        ("Silence", {"max_ratio": 0.1}, "high_audio_silence"),
        ("Silence", {"max_ratio": None, "min_ratio": 0.9}, "low_audio_silence"),
        ("Loudness", {"min_loudness": -3.0}, "low_audio_loudness"),
        ("Loudness", {"max_loudness": -40.0}, "high_audio_loudness"),
        ("SNR", {"min_snr": 90.0}, "low_audio_snr"),
        ("SNR", {"max_snr": 3.0}, "high_audio_snr"),
        ("SNR", {}, None),
    ],
)
def test_limits_have_reasons(operator: str, options: Any, said: str | None, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.wav", sound(speech(2, noise=1e-4)))

    assert reason(getattr(data.audio, operator)(**options), record) == said


# ------------------------------------------------------------ silence


def test_silence_is_the_share_of_quiet_windows(tmp_path: Path) -> None:
    samples = np.concatenate([tone(0.6), np.zeros(6400), tone(0.5, level=1e-4)])
    record = stored(tmp_path, "a.wav", sound(samples, subtype="FLOAT"))

    assert tagged("Silence", record) == pytest.approx(0.9 / 1.5)
    assert tagged("Silence", record, level=-100.0) == pytest.approx(0.4 / 1.5)
    stereo = np.stack([samples, np.zeros_like(samples)], axis=1)
    record = stored(tmp_path, "b.wav", sound(stereo, subtype="FLOAT"))
    assert tagged("Silence", record) == pytest.approx(0.9 / 1.5)


def test_the_level_is_the_root_of_the_mean_square(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.wav", sound(tone(1, level=0.1, hertz=500), subtype="FLOAT"))
    level = 20 * math.log10(0.1 / math.sqrt(2))

    assert tagged("Silence", record, level=level + 0.01) == 1
    assert tagged("Silence", record, level=level - 0.01) == 0


@each("count", [0, 1, 5, 319, 320, 321, 65_536, 65_537, 131_072, 131_073])
def test_blocks_and_windows_do_not_lose_samples(count: int, tmp_path: Path) -> None:
    samples = np.where(np.arange(count) < count // 2 // 320 * 320, 0.5, 0.0)
    record = stored(tmp_path, "a.wav", sound(samples))
    expected = (count - count // 2 // 320 * 320) / count if count else 1

    assert tagged("Silence", record) == pytest.approx(expected)


# ------------------------------------------------------------ loudness


def loudness_of_ffmpeg(content: bytes) -> float:
    found = {}
    with av.open(io.BytesIO(content)) as container:
        (track,) = container.streams.audio
        graph = av.filter.Graph()
        nodes = [
            graph.add_abuffer(template=track),
            graph.add("ebur128", "metadata=1:framelog=quiet"),
            graph.add("abuffersink"),
        ]
        nodes[0].link_to(nodes[1])
        nodes[1].link_to(nodes[2])
        graph.configure()
        for frame in [*container.decode(track), None]:
            graph.push(frame)
            with suppress(av.BlockingIOError, av.EOFError):
                while True:
                    found = graph.pull().metadata
    return float(found["lavfi.r128.I"])


@each(
    "case",
    [
        (48_000, 2, -23.0, 1000.0),  # EBU Tech 3341, test 1
        (48_000, 2, -33.0, 1000.0),  # test 2
        (44_100, 2, -23.0, 1000.0),
        (16_000, 2, -20.0, 1000.0),
        (8_000, 2, -20.0, 1000.0),
    ],
)
def test_a_stereo_sine_of_1_khz_has_its_level_as_loudness(case: Any, tmp_path: Path) -> None:
    rate, channels, level, hertz = case
    samples = tone(5, rate, 10 ** (level / 20), hertz)
    both = np.stack([samples] * channels, axis=1)
    record = stored(tmp_path, "a.wav", sound(both, rate, subtype="FLOAT"))

    assert tagged("Loudness", record) == pytest.approx(level, abs=0.1)


def test_quiet_parts_are_left_out_by_the_gates(tmp_path: Path) -> None:
    levels = [(-36, 5), (-23, 30), (-36, 5)]  # EBU Tech 3341, test 3
    samples = np.concatenate(
        [tone(seconds, 48_000, 10 ** (level / 20), 1000) for level, seconds in levels]
    )
    record = stored(tmp_path, "a.wav", sound(np.stack([samples] * 2, axis=1), 48_000))

    assert tagged("Loudness", record) == pytest.approx(-23.0, abs=0.1)


def test_surround_channels_have_their_weights(tmp_path: Path) -> None:
    levels = [-28, -28, -24, None, -30, -30]  # EBU Tech 3341, test 6, with low frequencies
    samples = [
        tone(5, 48_000, 10 ** (level / 20) if level else 0.9, 1000 if level else 50)
        for level in levels
    ]
    record = stored(tmp_path, "a.wav", sound(np.stack(samples, axis=1), 48_000))

    assert tagged("Loudness", record) == pytest.approx(-23.0, abs=0.1)
    eight = stored(tmp_path, "b.wav", sound(np.zeros((100, 8))))
    with pytest.raises(FileError, match="has 8 channels; loudness is defined for 1 to 6"):
        data.audio.Loudness().forward(eight)


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.3])
def test_silence_and_short_sounds_have_a_loudness(seconds: float, tmp_path: Path) -> None:
    quiet = stored(tmp_path, "a.wav", sound(np.zeros(round(seconds * 16_000))))
    assert tagged("Loudness", quiet) == -70
    if seconds:
        loud = stored(tmp_path, "b.wav", sound(tone(seconds, hertz=1000, level=0.1)))
        assert tagged("Loudness", loud) == pytest.approx(-23, abs=1)


# ------------------------------------------------------------ noise


@each("ratio", [0, 10, 20, 40])
def test_noise_below_speech_is_found(ratio: float, tmp_path: Path) -> None:
    noise = 0.4 / math.sqrt(2) / 10 ** (ratio / 20)
    record = stored(tmp_path, "a.wav", sound(speech(20, noise=noise) / 3, subtype="FLOAT"))

    assert tagged("SNR", record) == pytest.approx(ratio, abs=1.5)


def test_sounds_without_signal_or_noise_have_the_limits(tmp_path: Path) -> None:
    assert tagged("SNR", stored(tmp_path, "a.wav", sound(np.zeros(9000)))) == -20
    assert tagged("SNR", stored(tmp_path, "b.wav", sound(np.zeros(0)))) == -20
    assert tagged("SNR", stored(tmp_path, "c.wav", sound(speech(2, noise=0)))) == 100


def test_the_loudness_is_that_of_ffmpeg(tmp_path: Path) -> None:
    for rate, seed in ((48_000, 1), (44_100, 2), (22_050, 3), (16_000, 4)):
        content = sound(speech(8, rate, 0.02, seed), rate)
        record = stored(tmp_path, "a.wav", content)
        assert tagged("Loudness", record) == pytest.approx(loudness_of_ffmpeg(content), abs=0.02)
