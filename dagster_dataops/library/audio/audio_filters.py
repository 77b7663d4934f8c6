"""Filters by measurements of a sound: duration, sample rate, silence, loudness, noise."""

import math
from functools import partial
from typing import Annotated, Any, TypeAlias

from annotated_types import Interval

from dagster_dataops.foundation.override import override
from dagster_dataops.library.audio.audio_files import (
    MAX_BYTES,
    MAX_SECONDS,
    AudioFile,
    AudioHead,
    AudioSource,
    Seconds,
    audio,
)
from dagster_dataops.library.audio.levels import signal_to_noise, silence_ratio
from dagster_dataops.library.audio.loudness import loudness
from dagster_dataops.library.file_column import FileFilter
from dagster_dataops.library.filters.rules import bounds
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, Fraction, PositiveInt
from dagster_dataops.records import Record

_Level: TypeAlias = Annotated[float, Interval(ge=-120, le=0)]
_Loudness: TypeAlias = Annotated[float, Interval(ge=-70, le=20)]
_Decibels: TypeAlias = Annotated[float, Interval(ge=-20, le=100)]


class AudioFilter(FileFilter):
    """A filter by measurements of a sound. A subclass sets ``rules``.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        max_bytes: Most bytes of a file; a larger one is an error.
        **kwargs: See `Filter`.
    """

    def __init__(
        self, *, input_key: str = "file", max_bytes: PositiveInt = MAX_BYTES, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        name = f"audio.{type(self).__name__}"
        self._sounds = AudioSource(name, input_key, math.inf, max_bytes)

    @override
    def subject(self, record: Record) -> AudioFile | AudioHead:
        return self._sounds.of(record)


class DecodedAudioFilter(AudioFilter):
    """A filter by measurements of the samples of a sound, for which it is decoded.

    Args:
        max_seconds: Longest duration; a longer sound is an error, before it is decoded.
        **kwargs: See `AudioFilter`.
    """

    def __init__(self, *, max_seconds: Seconds = MAX_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sounds.max_seconds = max_seconds


class HeadFilter(AudioFilter):
    """A filter by what the head of a sound tells."""

    @override
    def subject(self, record: Record) -> AudioHead:
        return self._sounds.head_of(record)


class Duration(HeadFilter, audio):
    """Keep sounds of ``min_seconds`` to ``max_seconds`` seconds.

    Reads the head of the file in ``input_key="file"``: the duration is the one that the file
    declares, as in ``soundfile.info``. Of files above 1 MiB, size and version are checked, not the
    digest. MP3 files without a head that declares it are read whole, and libsndfile estimates it.
    ``None`` is no limit. Signal ``audio_seconds``; reasons ``low_audio_seconds``,
    ``high_audio_seconds``. Needs the extra ``audio``.

    Source: ``audio_duration_filter`` of Data-Juicer, which decodes the sound and counts samples.

    Args:
        min_seconds: Shortest duration to keep; ``None`` for no limit.
        max_seconds: Longest duration to keep; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_seconds: AtLeastZeroFloat | None = None,
        max_seconds: AtLeastZeroFloat | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("audio_seconds", lambda sound: sound.seconds, min_seconds, max_seconds)


class SampleRate(HeadFilter, audio):
    """Keep sounds of ``min_rate`` to ``max_rate`` frames a second.

    Reads the head of the file in ``input_key="file"``. Of files above 1 MiB, size and version are
    checked, not the digest. ``None`` is no limit. Signal ``audio_rate``; reasons
    ``low_audio_rate``, ``high_audio_rate``. Needs the extra ``audio``.

    Source: the sample rate of soundfile; Data-Juicer has no such filter.

    Args:
        min_rate: Smallest rate to keep, in Hz; ``None`` for no limit.
        max_rate: Largest rate to keep, in Hz; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_rate: PositiveInt | None = 16_000,
        max_rate: PositiveInt | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("audio_rate", lambda sound: sound.rate, min_rate, max_rate)


class Silence(DecodedAudioFilter, audio):
    """Drop sounds of which more than ``max_ratio`` is silent.

    Reads the file in ``input_key="file"``. Windows of 20 ms whose level is below ``level`` are
    silent: the root of the mean square over all channels, in dB relative to full scale. ``None`` is
    no limit. Signal ``audio_silence``, a share of the duration (1 for an empty sound); reasons
    ``low_audio_silence``, ``high_audio_silence``. Needs the extra ``audio``.

    Source: own; the level is that of pydub's ``dBFS``. Data-Juicer has no such filter.

    Args:
        min_ratio: Smallest share to keep; ``None`` for no limit.
        max_ratio: Largest share to keep; ``None`` for no limit.
        level: Level below which a window is silent, -120 to 0 dB.
    """

    def __init__(
        self,
        *,
        min_ratio: Fraction | None = None,
        max_ratio: Fraction | None = 0.5,
        level: _Level = -50.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        share = partial(silence_ratio, level=level)
        self.rules = bounds("audio_silence", share, min_ratio, max_ratio)


class Loudness(DecodedAudioFilter, audio):
    """Keep sounds whose integrated loudness is ``min_loudness`` to ``max_loudness`` LUFS.

    Reads the file in ``input_key="file"``. It is that of ITU-R BS.1770-4 and EBU R 128: with the
    filters of the standard, in blocks of 400 ms with both gates; -70 for silence. A shorter sound
    is one block. ``None`` is no limit. Signal ``audio_loudness``; reasons
    ``low_audio_loudness``, ``high_audio_loudness``. Needs the extra ``audio``.

    Source: Recommendation ITU-R BS.1770-4. Data-Juicer has no such filter.

    Args:
        min_loudness: Smallest loudness to keep, -70 to 20 LUFS; ``None`` for no limit.
        max_loudness: Largest loudness to keep, -70 to 20 LUFS; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_loudness: _Loudness | None = -50.0,
        max_loudness: _Loudness | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("audio_loudness", loudness, min_loudness, max_loudness)


class SNR(DecodedAudioFilter, audio):
    """Keep sounds whose signal is ``min_snr`` to ``max_snr`` dB louder than their noise.

    Reads the file in ``input_key="file"``. Windows of 20 ms are ranked by their power. Noise is the
    power at 15 % of them, the signal that at 95 % minus the noise: so it fits speech, which has
    pauses, and is too low for sounds without pauses. The ratio is -20 without a signal, and at most
    100 dB. ``None`` is no limit. Signal ``audio_snr``; reasons ``low_audio_snr``,
    ``high_audio_snr``. Needs the extra ``audio``.

    Source: the percentiles of the SNR of NIST for speech. ``audio_nmf_snr_filter`` of Data-Juicer
    splits the spectrum into two random components instead, and calls one of them noise.

    Args:
        min_snr: Smallest ratio to keep, -20 to 100 dB; ``None`` for no limit.
        max_snr: Largest ratio to keep, -20 to 100 dB; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_snr: _Decibels | None = 10.0,
        max_snr: _Decibels | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("audio_snr", signal_to_noise, min_snr, max_snr)
