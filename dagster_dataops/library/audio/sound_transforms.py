"""``audio.Resample`` and ``audio.Cut``: other files of a sound."""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from dagster_dataops.library.audio.audio_files import (
    MAX_BYTES,
    MAX_SECONDS,
    AudioFile,
    AudioSource,
    Seconds,
    audio,
)
from dagster_dataops.library.audio.levels import window_frames, window_powers
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.file_column import LEAVE_OUT, decoding
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

Format: TypeAlias = Literal["flac", "wav"]

_FINE: Final = frozenset({"PCM_24", "PCM_32", "FLOAT", "DOUBLE"})  # written with 24 bits
_BITS: Final = {"PCM_16": 16, "PCM_24": 24}


class Resample(audio):
    """Change the sample rate of sounds, and make them mono.

    Reads the file in ``input_key="file"`` and writes the new file to ``output_key=None``, by
    default in its place. soxr resamples with its quality HQ. With ``mono``, the new file has the
    mean of all channels. It has 16 bits a sample, or 24 if the sound has more than 16, and no
    metadata. A sound that has the rate, the channels and the format is decoded, and keeps its
    file. The bytes depend on the versions of soxr and, for FLAC, libsndfile with libFLAC. Needs the
    extra ``audio``.

    Source: soxr, the resampler of librosa. Data-Juicer calls FFmpeg for it.

    Args:
        rate: Frames a second.
        input_key: Key of the file: a column, or a selector of one element.
        output_key: Column of the new file; ``None`` for ``input_key``.
        mono: Whether all channels become one.
        format: ``flac`` or ``wav``.
        max_seconds: Longest duration; a longer sound is an error, before it is decoded.
        max_bytes: Most bytes of a file; a larger one is an error.
    """

    def __init__(
        self,
        rate: PositiveInt = 16_000,
        input_key: str = "file",
        output_key: str | None = None,
        *,
        mono: bool = False,
        format: Format = "flac",  # noqa: A002 - the name of the option
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with needs_extra("audio.Resample", "audio"):
            import soxr  # noqa: F401
        self._sounds = AudioSource("audio.Resample", input_key, max_seconds, max_bytes)
        self._rate, self._mono, self._format = rate, mono, format
        self._written = output_key

    def forward(self, record: Record) -> Record:
        sound = self._sounds.of(record)
        channels = 1 if self._mono else sound.channels
        same = (sound.rate, sound.channels, sound.format.lower())
        if same == (self._rate, channels, self._format):
            if not sound.decoded_frames():
                raise _no_sound(sound)
            value: Any = self._sounds.column.value(record)
        else:
            blocks = self._resampled(sound, channels)
            with decoding(sound.name, f"written as {self._format}"):
                value = encoded(blocks, self._rate, channels, subtype_of(sound), self._format)
        return self._sounds.column.written(record, value, self._written)

    def _resampled(self, sound: AudioFile, channels: int) -> Iterator[Any]:
        import numpy as np
        import soxr

        stream = soxr.ResampleStream(sound.rate, self._rate, channels, "float64", "HQ")
        frames = 0
        for block in sound.blocks():
            frames += len(block)
            mixed = block.mean(axis=1, keepdims=True) if channels < sound.channels else block
            yield stream.resample_chunk(np.ascontiguousarray(mixed)).reshape(-1, channels)
        if not frames:  # FLAC would be a file without bytes
            raise _no_sound(sound)
        rest = stream.resample_chunk(np.zeros((0, channels)), last=True)
        yield rest.reshape(-1, channels)


def _no_sound(sound: AudioFile) -> FileError:
    return FileError(sound.name, "has no sound", LEAVE_OUT)


class Cut(audio):
    """Cut sounds into pieces, a record for each.

    Reads the file in ``input_key="file"`` and writes the piece to ``output_key=None``, by default
    in its place. The record of a piece has the other columns too, and the number of the piece in
    ``index_key="chunk"``, its beginning and its end in seconds in ``start_key="start"`` and
    ``end_key="end"``.

    With ``segments_key``, the pieces are those in that column: a list of ``[start, end]`` in
    seconds. Without, they have ``seconds`` each and the last one is shorter; ``by="silence"`` ends
    each piece in the middle of the quietest window of 20 ms in its second half, so that words stay
    whole. A sound without samples, or with an empty list of pieces, is dropped for the reason
    ``no_pieces``. Samples are not changed: 16 bits a sample, or 24 if the sound has more. Pieces
    have no metadata. The bytes of FLAC depend on the versions of libsndfile and libFLAC. Needs the
    extra ``audio``.

    Source: own. Data-Juicer cuts videos only.

    Args:
        seconds: Longest duration of a piece.
        input_key: Key of the file: a column, or a selector of one element.
        output_key: Column of the piece; ``None`` for ``input_key``.
        by: ``time`` or ``silence``.
        segments_key: Column of the beginnings and ends; ``None`` cuts by ``seconds``.
        index_key: Column of the number of the piece, from 0; ``None`` writes none.
        start_key: Column of the beginning in seconds; ``None`` writes none.
        end_key: Column of the end in seconds; ``None`` writes none.
        format: ``flac`` or ``wav``.
        max_seconds: Longest duration of a sound; a longer one is an error, before it is decoded.
        max_bytes: Most bytes of a file; a larger one is an error.
    """

    def __init__(
        self,
        seconds: Seconds = 30.0,
        input_key: str = "file",
        output_key: str | None = None,
        *,
        by: Literal["time", "silence"] = "time",
        segments_key: str | None = None,
        index_key: str | None = "chunk",
        start_key: str | None = "start",
        end_key: str | None = "end",
        format: Format = "flac",  # noqa: A002 - the name of the option
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._sounds = AudioSource("audio.Cut", input_key, max_seconds, max_bytes)
        self._segments = None if segments_key is None else FieldKey(segments_key)
        self._seconds, self._silence, self._format = seconds, by == "silence", format
        self._written, self._keys = output_key, (index_key, start_key, end_key)

    def forward(self, record: Record) -> list[Record] | Drop:
        sound = self._sounds.of(record)
        pieces = []
        for number, span in enumerate(self._spans(record, sound)):
            blocks = _frames(sound, span)
            form = sound.rate, sound.channels, subtype_of(sound), self._format
            with decoding(sound.name, f"written as {self._format}"):
                piece = encoded(blocks, *form)
            written = self._sounds.column.written(record.copy(), piece, self._written)
            values = number, span.first / sound.rate, span.end / sound.rate
            written.update(
                {key: value for key, value in zip(self._keys, values, strict=True) if key}
            )
            pieces.append(written)
        return pieces or Drop("no_pieces")

    def _spans(self, record: Record, sound: AudioFile) -> Iterable["_Span"]:
        if self._segments is not None:
            told = self._segments.value(record)
            if not isinstance(told, list):
                fault = f"column {self._segments.name!r} has {told!r:.60}, no list of [start, end]"
                raise FileError(sound.name, fault, LEAVE_OUT)
            return [_told_span(sound, span) for span in told]
        size = max(1, round(self._seconds * sound.rate))
        return _quiet_spans(sound, size) if self._silence else _even_spans(sound, size)


class _Span(NamedTuple):
    """Frames of a sound, from the first to the one behind the last."""

    first: int
    end: int


def _even_spans(sound: AudioFile, size: int) -> list[_Span]:
    frames = sound.decoded_frames()
    return [_Span(first, min(first + size, frames)) for first in range(0, frames, size)]


def _quiet_spans(sound: AudioFile, size: int) -> list[_Span]:
    powers, lengths = window_powers(sound)
    frames, window = int(lengths.sum()), window_frames(sound.rate)
    spans, first = [], 0
    while frames - first > size:
        low, high = -(-(first + size // 2) // window), (first + size) // window
        quietest = low + int(powers[low:high].argmin()) if low < high else 0
        end = quietest * window + window // 2 if low < high else first + size
        spans.append(_Span(first, end))
        first = end
    return [*spans, _Span(first, frames)] if frames > first else spans


def _told_span(sound: AudioFile, told: object) -> _Span:
    """Return the frames of a beginning and an end in seconds."""
    if isinstance(told, Sequence) and len(told) == 2 and all(map(_is_number, told)):
        first, end = (round(seconds * sound.rate) for seconds in told)
        if 0 <= first < end <= sound.frames:
            return _Span(first, end)
    fault = f"its segment {told!r:.60} is no [start, end] inside of {sound.seconds:g} seconds"
    raise FileError(sound.name, fault, LEAVE_OUT)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _frames(sound: AudioFile, span: _Span) -> Iterator[Any]:
    """Yield the frames of a span as they are stored, or as numbers from -1 to 1."""
    kind = "int32" if sound.opened.subtype.startswith("PCM_") else "float64"
    left = span.end - span.first
    for block in sound.blocks(kind, span.first):
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return


def subtype_of(sound: AudioFile) -> str:
    """Return the kind of samples that a new file of a sound has: of 16 or of 24 bits."""
    return "PCM_24" if sound.opened.subtype in _FINE else "PCM_16"


def encoded(blocks: Iterable[Any], rate: int, channels: int, subtype: str, form: Format) -> File:
    """Return a sound as a file.

    Args:
        blocks: Arrays of the shape (frames, channels): whole numbers of 32 bits, or from -1 to 1.
        rate: Frames a second.
        channels: The number of channels.
        subtype: ``PCM_16`` or ``PCM_24``.
        form: The format.
    """
    import soundfile as package

    written = BytesIO()
    with package.SoundFile(written, "w", rate, channels, subtype, format=form.upper()) as file:
        for block in blocks:
            file.write(_whole(block, _BITS[subtype]))
    return File(written.getvalue(), f"audio/{form}")


def _whole(block: Any, bits: int) -> Any:
    """Return samples as whole numbers of 32 bits, of which the first ``bits`` count."""
    import numpy as np

    if block.dtype == np.int32:
        return block
    most = 1 << (bits - 1)
    rounded = np.clip(np.rint(block * most), -most, most - 1).astype(np.int32)
    return np.left_shift(rounded, 32 - bits)
