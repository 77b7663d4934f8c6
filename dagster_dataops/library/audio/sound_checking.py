"""``audio.Check``: keep sounds that can be decoded, by format and channels."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dagster_dataops.errors import FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.audio.audio_files import (
    FORMATS,
    MAX_BYTES,
    MAX_SECONDS,
    AudioFile,
    AudioSource,
    Seconds,
    audio,
)
from dagster_dataops.library.file_column import LEAVE_OUT, FileCheck
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record


class Check(FileCheck, audio):
    """Keep sounds that can be decoded whole, of certain formats and numbers of channels.

    Reads the file in ``input_key="file"``, and decodes it. A file that is damaged, truncated,
    empty, too long or no sound is an error of its record, with path and reason; with
    ``on_error="drop"`` it is dropped for the reason ``broken``. A file that cannot be reached, or
    has more than ``max_bytes``, is an error in any case. WAV, FLAC, Ogg, MP3 and AIFF are read.

    Signals ``audio_format``, ``audio_seconds``, ``audio_rate`` and ``audio_channels``; reasons
    ``broken``, ``format``, ``low_audio_channels``, ``high_audio_channels``. Needs the extra
    ``audio``.

    Source: the decoders of libsndfile, which take a truncated WAV or MP3 file for a shorter one;
    so the sizes, counts and checksums that a file declares are checked too.
    Data-Juicer checks sounds only where it loads them.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        formats: Names of the formats to keep, such as ``["FLAC", "WAV"]``; ``None`` for all.
        min_channels: Smallest number of channels to keep; ``None`` for no limit.
        max_channels: Largest number of channels to keep; ``None`` for no limit.
        max_seconds: Longest duration; a longer sound is an error, before it is decoded.
        max_bytes: Most bytes of a file.
    """

    names = ("audio_format", "audio_seconds", "audio_rate", "audio_channels")

    def __init__(
        self,
        *,
        input_key: str = "file",
        formats: Collection[str] | None = None,
        min_channels: PositiveInt | None = None,
        max_channels: PositiveInt | None = None,
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in formats or ():
            check_choice("formats", name, FORMATS)
        self._sounds = AudioSource("audio.Check", input_key, max_seconds, max_bytes)
        self._formats, self._least, self._most = formats, min_channels, max_channels

    @override
    def reached(self, record: Record) -> AbstractContextManager[AudioFile]:
        sound = self._sounds.of(record)
        sound.read()
        return nullcontext(sound)

    @override
    def measured(self, file: AudioFile) -> tuple[Any, ...]:
        frames = file.decoded_frames()
        if not frames:
            raise FileError(file.name, "has no sound", LEAVE_OUT)
        return file.format, frames / file.rate, file.rate, file.channels

    @override
    def reason(self, signals: Mapping[str, Any]) -> str | None:
        if self._formats is not None and signals["audio_format"] not in self._formats:
            return "format"
        channels = signals["audio_channels"]
        if self._least is not None and channels < self._least:
            return "low_audio_channels"
        is_high = self._most is not None and channels > self._most
        return "high_audio_channels" if is_high else None
