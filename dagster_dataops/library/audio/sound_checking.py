"""``audio.Check``: keep sounds that can be decoded, by format and channels."""

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from typing_extensions import override

from dagster_dataops.errors import FileError
from dagster_dataops.library.audio.audio_files import (
    FORMATS,
    MAX_BYTES,
    MAX_SECONDS,
    AudioFile,
    AudioSource,
    Seconds,
    audio,
)
from dagster_dataops.library.filters.rules import Filter, Judgement
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_NAMES: Final = ("audio_format", "audio_seconds", "audio_rate", "audio_channels")


class Check(Filter, audio):
    """Keep sounds that can be decoded whole, of certain formats and numbers of channels.

    Reads the file in ``input_key="file"``, and decodes it. A file that is damaged, truncated,
    empty, too long or no sound is an error of its record, with path and reason; with
    ``on_error="drop"`` it is dropped for the reason ``broken``. A file that cannot be reached, or
    has more than ``max_bytes``, is an error in any case. WAV, FLAC, Ogg, MP3 and AIFF are read.

    Signals ``audio_format``, ``audio_seconds``, ``audio_rate`` and ``audio_channels``; reasons
    ``broken``, ``format``, ``low_audio_channels``, ``high_audio_channels``. Needs the extra
    ``audio``.

    Source: the decoders of libsndfile, which take a truncated WAV file for a shorter one.
    Data-Juicer checks sounds only where it loads them.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        formats: Names of the formats to keep, such as ``["FLAC", "WAV"]``; ``None`` for all.
        min_channels: Smallest number of channels to keep; ``None`` for no limit.
        max_channels: Largest number of channels to keep; ``None`` for no limit.
        on_error: ``raise``, or ``drop`` files that cannot be decoded.
        max_seconds: Longest duration; a longer sound is an error, before it is decoded.
        max_bytes: Most bytes of a file.
    """

    def __init__(
        self,
        *,
        input_key: str = "file",
        formats: Collection[str] | None = None,
        min_channels: PositiveInt | None = None,
        max_channels: PositiveInt | None = None,
        on_error: Literal["raise", "drop"] = "raise",
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for one in formats or ():
            check_choice("formats", one, FORMATS)
        self._sounds = AudioSource("audio.Check", input_key, max_seconds, max_bytes)
        self._formats, self._drops = formats, on_error == "drop"
        self._least, self._most = min_channels, max_channels

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del thorough
        if known.keys() >= set(_NAMES):
            return Judgement(self._reason(known), {name: known[name] for name in _NAMES})
        sound = self._sounds.of(record)
        name = sound.name  # reads it: one that cannot be reached is an error
        try:
            signals = _signals(name, sound)
        except FileError:
            if not self._drops:
                raise
            return Judgement("broken")
        return Judgement(self._reason(signals), signals)

    def _reason(self, signals: Mapping[str, Any]) -> str | None:
        if self._formats is not None and signals["audio_format"] not in self._formats:
            return "format"
        channels = signals["audio_channels"]
        if self._least is not None and channels < self._least:
            return "low_audio_channels"
        return "high_audio_channels" if channels > (self._most or channels) else None


def _signals(name: str, sound: AudioFile) -> dict[str, Any]:
    """Return the signals of a sound that was decoded whole."""
    frames = sum(map(len, sound.blocks()))
    if not frames:
        raise FileError(name, "has no sound", "replace the file, or leave it out")
    found = (sound.format, frames / sound.rate, sound.rate, sound.channels)
    return dict(zip(_NAMES, found, strict=True))
