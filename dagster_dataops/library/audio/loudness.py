"""The integrated loudness of a sound, by ITU-R BS.1770-4."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from dagster_dataops.errors import FileError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.audio.audio_files import AudioFile
from dagster_dataops.library.audio.levels import DIGITS
from dagster_dataops.library.file_column import LEAVE_OUT

LEAST_LOUDNESS: Final = -70.0  # the absolute gate
_OFFSET: Final = -0.691
_RELATIVE_GATE: Final = -10.0
_STEP_SECONDS: Final = 0.1
_STEPS: Final = 4  # in a block of 400 ms
_MEMORY_SECONDS: Final = 0.5  # after which the filters have forgotten a sample
_SURROUND: Final = 1.41
_WEIGHTS: Final = {
    1: (1.0,),
    2: (1.0, 1.0),
    3: (1.0, 1.0, 1.0),
    4: (1.0, 1.0, _SURROUND, _SURROUND),
    5: (1.0, 1.0, 1.0, _SURROUND, _SURROUND),
    6: (1.0, 1.0, 1.0, 0.0, _SURROUND, _SURROUND),  # the fourth has only low frequencies
}


def loudness(sound: AudioFile) -> float:
    """Return the integrated loudness in LUFS; -70 for silence.

    A sound of less than 400 ms is one block.
    """
    import numpy as np

    if sound.channels not in _WEIGHTS:
        problem = f"has {counted(sound.channels, 'channels')}; loudness is defined for 1 to 6"
        raise FileError(sound.name, problem, LEAVE_OUT)
    steps = _step_powers(sound) @ np.array(_WEIGHTS[sound.channels])
    if len(steps) < _STEPS:
        blocks = steps.mean(keepdims=True) if len(steps) else np.zeros(1)
    else:
        blocks = np.convolve(steps, np.full(_STEPS, 1 / _STEPS), "valid")
    blocks = blocks[blocks > _power(LEAST_LOUDNESS)]
    if not len(blocks):
        return LEAST_LOUDNESS
    blocks = blocks[blocks > _power(_level(blocks.mean()) + _RELATIVE_GATE)]
    return round(_level(blocks.mean()), DIGITS)


def _level(power: float) -> float:
    return _OFFSET + 10 * math.log10(power)


def _power(level: float) -> float:
    return float(10 ** ((level - _OFFSET) / 10))


def _step_powers(sound: AudioFile) -> Any:
    """Return the mean square of the filtered sound, of each whole step and each channel.

    A sound that has no whole block counts to its end.
    """
    import numpy as np

    size = round(sound.rate * _STEP_SECONDS)
    rest = np.zeros((0, sound.channels))
    powers = [rest]
    for block in _weighted(sound):
        frames = np.concatenate([rest, block])
        whole = len(frames) // size * size
        powers.append((frames[:whole].reshape(-1, size, sound.channels) ** 2).mean(axis=1))
        rest = frames[whole:]
    if sum(map(len, powers)) < _STEPS and len(rest):
        powers.append((rest**2).mean(axis=0, keepdims=True))
    return np.concatenate(powers)


def _weighted(sound: AudioFile) -> Iterator[Any]:
    """Yield the sound after the filters of the standard, in blocks."""
    import numpy as np

    response = _response(sound.rate)
    before = np.zeros((len(response) - 1, sound.channels))
    for block in sound.blocks():
        frames = np.concatenate([before, block])
        size = 1 << (len(frames) + len(response) - 1).bit_length()
        spectrum = np.fft.rfft(frames, size, axis=0) * np.fft.rfft(response, size)[:, None]
        yield np.fft.irfft(spectrum, size, axis=0)[len(before) : len(frames)]
        before = frames[-len(before) :]


@lru_cache(maxsize=8)
def _response(rate: int) -> Any:
    """Return what both filters make of one sample of 1, for as long as it can be measured.

    The coefficients for 48 kHz are those of the standard; for other rates they follow from the
    same analogue filters.
    """
    import numpy as np

    values = [1.0] + [0.0] * max(1, round(rate * _MEMORY_SECONDS))
    for ahead, back in (_shelf(rate), _high_pass(rate)):
        values = _filtered(values, ahead, back)
    return np.array(values)


def _filtered(
    values: list[float], ahead: tuple[float, float, float], back: tuple[float, float]
) -> list[float]:
    samples = []
    first = second = 0.0  # the state of the filter
    for value in values:
        result = ahead[0] * value + first
        first = ahead[1] * value - back[0] * result + second
        second = ahead[2] * value - back[1] * result
        samples.append(result)
    return samples


def _shelf(rate: int) -> tuple[tuple[float, float, float], tuple[float, float]]:
    width, gain = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    middle = gain**0.4996667741545416
    turn = math.tan(math.pi * min(1681.974450955533, 0.45 * rate) / rate)
    scale = 1 + turn / width + turn * turn
    ahead = (
        (gain + middle * turn / width + turn * turn) / scale,
        2 * (turn * turn - gain) / scale,
        (gain - middle * turn / width + turn * turn) / scale,
    )
    return ahead, (2 * (turn * turn - 1) / scale, (1 - turn / width + turn * turn) / scale)


def _high_pass(rate: int) -> tuple[tuple[float, float, float], tuple[float, float]]:
    width = 0.5003270373238773
    turn = math.tan(math.pi * 38.13547087602444 / rate)
    scale = 1 + turn / width + turn * turn
    back = (2 * (turn * turn - 1) / scale, (1 - turn / width + turn * turn) / scale)
    return (1.0, -2.0, 1.0), back
