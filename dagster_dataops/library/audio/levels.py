"""Levels of a sound: its power in short windows, silence, noise."""

import math
from typing import Any, Final

from dagster_dataops.library.audio.audio_files import AudioFile

_WINDOW_SECONDS: Final = 0.02
_NOISE_RANK, _SIGNAL_RANK = 0.15, 0.95  # of the windows, from quiet to loud
LEAST_SNR, MOST_SNR = -20.0, 100.0
DIGITS: Final = 6  # of decibels; further ones differ from machine to machine


def window_frames(rate: int) -> int:
    """Return the number of frames in a window of 20 ms."""
    return max(1, round(rate * _WINDOW_SECONDS))


def window_powers(sound: AudioFile) -> tuple[Any, Any]:
    """Return the mean square of each window, over all channels, and its number of frames."""
    import numpy as np

    size = window_frames(sound.rate)
    rest = np.zeros((0, sound.channels))
    powers: list[Any] = []
    for block in sound.blocks():
        frames = np.concatenate([rest, block])
        whole = len(frames) // size * size
        powers.append((frames[:whole].reshape(-1, size * sound.channels) ** 2).mean(axis=1))
        rest = frames[whole:]
    lengths = np.full(sum(map(len, powers)), size)
    if len(rest):
        powers.append(np.array([(rest**2).mean()]))
        lengths = np.append(lengths, len(rest))
    return np.concatenate([np.zeros(0), *powers]), lengths


def silence_ratio(sound: AudioFile, level: float) -> float:
    """Return the share of the duration in windows below a level in dB of full scale."""
    powers, lengths = window_powers(sound)
    total = int(lengths.sum())
    quiet = powers < 10 ** (level / 10)
    return float(lengths[quiet].sum() / total) if total else 1.0


def signal_to_noise(sound: AudioFile) -> float:
    """Return the ratio of the power of loud windows to that of quiet ones, in dB."""
    import numpy as np

    powers = np.sort(window_powers(sound)[0])
    if not len(powers):
        return LEAST_SNR
    noise = float(powers[int(_NOISE_RANK * (len(powers) - 1))])
    signal = float(powers[int(_SIGNAL_RANK * (len(powers) - 1))]) - noise
    if signal <= 0:
        return LEAST_SNR
    ratio = 10 * math.log10(signal / noise) if noise else MOST_SNR
    return round(min(MOST_SNR, max(LEAST_SNR, ratio)), DIGITS)
