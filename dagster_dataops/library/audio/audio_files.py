"""`AudioSource` and `AudioFile`: sounds of records, decoded in blocks within limits."""

from collections.abc import Callable, Iterator
from functools import cached_property
from io import BytesIO
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

from annotated_types import Gt

from dagster_dataops.data import data_register
from dagster_dataops.datasets.file_values.completeness.containers import check_aiff, check_wav
from dagster_dataops.datasets.file_values.completeness.ogg_pages import check_ogg_end
from dagster_dataops.datasets.file_values.completeness.whole_content import check_whole
from dagster_dataops.errors import FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.file_column import (
    LEAVE_OUT,
    FileColumn,
    FileSource,
    HeadFile,
    RecordFile,
    decoding,
)
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.records import Record

audio: Any = data_register.new_group("audio")

Seconds: TypeAlias = Annotated[float, Gt(0)]
MAX_SECONDS: Final = 4 * 3600.0
MAX_BYTES: Final = 1 << 30
MOST_RATE: Final = 768_000

FORMATS: Final = ("WAV", "FLAC", "OGG", "MP3", "AIFF")
"""The formats that are read, as libsndfile names them."""
_NAMES: Final = {"WAVEX": "WAV"}
_BLOCK: Final = 1 << 16  # frames


def soundfile(operator: str) -> Any:
    """Return the package soundfile, with numpy at hand."""
    with needs_extra(operator, "audio"):
        import numpy  # noqa: F401
        import soundfile as package
    return package


class AudioSource(FileSource):
    """The sounds that an input key names.

    Args:
        operator: Name of the operator, for the error about missing packages.
        input_key: Key of the file: a column, or a selector of one element.
        max_seconds: Longest duration.
        max_bytes: Most bytes of a file.
    """

    def __init__(
        self,
        operator: str,
        input_key: str,
        max_seconds: float = MAX_SECONDS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        soundfile(operator)
        super().__init__(FileColumn(input_key, "audio/"), max_bytes)
        self.max_seconds = max_seconds

    def head_of(self, record: Record) -> "AudioHead":
        """Return the head of the sound of a record; its file is read on first use."""
        return AudioHead(self, record)

    def opened(self, name: str, file: BinaryIO) -> Any:
        """Return a sound as soundfile opens it; its duration is within the limit.

        Args:
            name: Its path or URL, for errors.
            file: Its bytes, in which a position before the beginning is the beginning.
        """
        import soundfile as package

        with decoding(name, "read"):
            try:
                sound = package.SoundFile(file)
            except package.LibsndfileError as error:
                msg = f"it is no sound in {', '.join(FORMATS)}, or its head is damaged"
                raise ValueError(f"{msg} ({_reason(error)})") from None
        if _NAMES.get(sound.format, sound.format) not in FORMATS:
            raise FileError(
                name, f"has the format {sound.format}, not {', '.join(FORMATS)}", LEAVE_OUT
            )
        if not 0 < sound.samplerate <= MOST_RATE:
            raise FileError(name, f"tells {sound.samplerate:,} samples a second", LEAVE_OUT)
        check = _COMPLETE.get(sound.format)
        if check is not None:
            position = file.tell()
            with decoding(name, "read"):
                check(file)
            file.seek(position)
        self.check_length(name, sound.frames, sound.samplerate)
        return sound

    def check_length(self, name: str, frames: int, rate: int) -> None:
        """Check the duration of a sound."""
        if frames > self.max_seconds * rate:
            problem = f"has more than max_seconds={self.max_seconds:g} seconds"
            raise FileError(name, problem, "raise the limit, or leave the file out")

    def of(self, record: Record) -> "AudioFile":
        """Return the sound of a record; its file is read on first use."""
        return AudioFile(self, record)


class AudioFile(RecordFile[AudioSource]):
    """The sound of a record; each attribute is read or computed when it is used.

    All attributes raise `FileError` if the file cannot be used.
    """

    @cached_property
    def opened(self) -> Any:
        """The file as soundfile opens it; it is whole, and its duration is within the limit."""
        sound = self._source.opened(self.name, _Bytes(self.data))
        with decoding(self.name, "read"):
            check_whole(self.data)
        return sound

    @property
    def format(self) -> str:
        """The format, one of `FORMATS`."""
        name = str(self.opened.format)
        return _NAMES.get(name, name)

    @property
    def rate(self) -> int:
        """The frames of a second."""
        return int(self.opened.samplerate)

    @property
    def channels(self) -> int:
        """The number of channels."""
        return int(self.opened.channels)

    @property
    def seconds(self) -> float:
        """The duration that the file declares; of MP3 files the one that is counted."""
        return float(self.frames / self.opened.samplerate)

    @cached_property
    def frames(self) -> int:
        """The number of frames. Of MP3 files they are counted: libsndfile may only estimate it."""
        return self.decoded_frames() if self.format == "MP3" else int(self.opened.frames)

    def decoded_frames(self) -> int:
        """Decode the sound to its end, and return the number of its frames."""
        return sum(map(len, self.blocks()))

    def blocks(self, kind: str = "float64", first: int = 0) -> Iterator[Any]:
        """Yield the frames from one on, as arrays of the shape (frames, channels).

        Args:
            kind: ``float64`` for -1 to 1, or ``int32`` for all 32 bits.
            first: The number of the first frame.

        Raises:
            FileError: It is damaged, has samples that are not finite, or ends before the number of
                frames that it states.
        """
        import soundfile as package

        read, told = first, self.opened.frames
        while True:
            with decoding(self.name):
                try:
                    if read == first:
                        self.opened.seek(first)
                    block = self.opened.read(_BLOCK, kind, always_2d=True)
                except package.LibsndfileError as error:
                    raise ValueError(error.error_string) from None
                finite(block)
            if not len(block):
                break
            read += len(block)
            self._source.check_length(self.name, read, self.rate)
            yield block
        if read < told and self.format != "MP3":  # `check_whole` checks what MP3 files declare
            problem = f"is truncated: it declares {told:,} frames, and has {read:,}"
            raise FileError(self.name, problem, LEAVE_OUT)


class AudioHead(HeadFile[AudioSource]):
    """The head of the sound of a record; no more of the file is read than soundfile asks for.

    Attributes raise `FileError` if the file cannot be used.
    """

    @cached_property
    def _frames_and_rate(self) -> tuple[int, int]:
        with self.opened() as file, self._source.opened(self.name, file) as sound:
            return int(sound.frames), int(sound.samplerate)

    @property
    def rate(self) -> int:
        """The frames of a second."""
        return self._frames_and_rate[1]

    @property
    def seconds(self) -> float:
        """The duration that the file declares."""
        frames, rate = self._frames_and_rate
        return frames / rate


def _reason(error: Any) -> str:
    """Return the reason of libsndfile; its reason for an MP3 file without a frame is wrong."""
    reason = str(error.error_string).rstrip(".")
    return "no frame was found" if reason.startswith("File does not exist") else reason


def finite(samples: Any) -> Any:
    """Return an array of samples whose values are all finite."""
    import numpy as np

    if samples.dtype.kind == "f" and not np.isfinite(samples).all():
        msg = "it has samples that are infinite or not a number"
        raise ValueError(msg)
    return samples


class _Bytes(BytesIO):
    """Bytes as a file, in which a position before the beginning is the beginning."""

    @override
    def seek(self, offset: int, whence: int = 0, /) -> int:
        start = {1: self.tell(), 2: len(self.getbuffer())}.get(whence, 0)
        return super().seek(max(0, start + offset))


_COMPLETE: Final[dict[str, Callable[[BinaryIO], None]]] = {
    "AIFF": check_aiff,
    "OGG": check_ogg_end,
    "WAV": check_wav,
    "WAVEX": check_wav,
}
