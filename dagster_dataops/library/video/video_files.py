"""`VideoSource` and `VideoFile`: films of records, opened and decoded within limits."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from dagster_dataops.data import data_register
from dagster_dataops.errors import FileError
from dagster_dataops.files import FileReference, type_of_content
from dagster_dataops.library.file_column import (
    LEAVE_OUT,
    FileColumn,
    FileSource,
    HeadFile,
    decoding,
)
from dagster_dataops.library.images.image_files import MAX_PIXELS
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.video.film_sizes import check_complete, check_frames
from dagster_dataops.records import Record

video: Any = data_register.new_group("video")

MAX_SECONDS: Final = 4 * 3600.0
MAX_BYTES: Final = 16 << 30
_GUESSING: Final = frozenset({"aac", "amr", "mp3", "mpeg", "mpegvideo"})  # duration by bit rate
_LENIENT: Final = 19  # the version of PyAV that reads metadata in any encoding
_HEAD: Final = 1 << 16
_MICROSECONDS: Final = 1_000_000
_MOST_RATE: Final = 10_000  # pictures a second
_SLACK: Final = 0.5  # seconds by which the end of a film may miss the duration that it declares

_FORMATS: Final = {
    "video/mp4": "mov", "video/quicktime": "mov", "video/3gpp": "mov", "audio/mp4": "mov",
    "video/webm": "matroska", "video/x-matroska": "matroska", "video/x-msvideo": "avi",
    "video/x-flv": "flv", "video/x-ms-asf": "asf", "audio/ogg": "ogg", "audio/wav": "wav",
    "audio/flac": "flac", "audio/mpeg": "mp3", "audio/aac": "aac", "audio/aiff": "aiff",
    "audio/amr": "amr",
}  # fmt: skip
"""The format of FFmpeg by the media type of the content. So a file that lists others opens none."""
_MPEG: Final = {b"\0\0\1\xba": "mpeg", b"\0\0\1\xb3": "mpegvideo"}


def pyav(operator: str) -> Any:
    """Return the package PyAV, with Pillow, numpy and soundfile at hand."""
    with needs_extra(operator, "video"):
        import av
        import numpy  # noqa: F401
        import PIL  # noqa: F401
        import soundfile  # noqa: F401
    return av


class VideoFacts(NamedTuple):
    """What the head of a film tells.

    Attributes:
        seconds: The duration.
        width: The width of its pictures, in pixels, as they are stored.
        height: Their height.
        rate: Pictures a second, on average; 0 if it is not told.
        codec: The name of the codec, as FFmpeg has it.
        sound: The number of audio tracks.
    """

    seconds: float
    width: int
    height: int
    rate: float
    codec: str
    sound: int


class VideoSource(FileSource):
    """The films that an input key names.

    Args:
        operator: Name of the operator, for the error about missing packages.
        input_key: Key of the file: a column, or a selector of one element.
        max_seconds: Longest duration.
        max_bytes: Most bytes of a file.
        kinds: What the media types of files begin with.
    """

    def __init__(
        self,
        operator: str,
        input_key: str,
        max_seconds: float = MAX_SECONDS,
        max_bytes: int = MAX_BYTES,
        kinds: tuple[str, ...] = ("video/", "audio/ogg"),
    ) -> None:
        pyav(operator)
        super().__init__(FileColumn(input_key, *kinds), max_bytes)
        self._max_seconds = max_seconds

    def of(self, record: Record) -> "VideoFile":
        """Return the film of a record; its file is read on first use."""
        return VideoFile(self, record)

    def reached(self, reference: FileReference) -> AbstractContextManager[Path]:
        """Return a context with the path of a file on this machine."""
        return reference.local(self.max_bytes)

    @contextmanager
    def film(self, record: Record) -> Iterator["OpenFilm"]:
        """Yield the film of a record, open inside of the block. For errors see `opened`."""
        reference = self.column.reference(record)
        with self.reached(reference) as path, self.opened(reference, path) as film:
            yield film

    @contextmanager
    def opened(self, reference: FileReference, path: Path) -> Iterator["OpenFilm"]:
        """Yield a film, open inside of the block."""
        with path.open("rb") as file:
            self.column.check_type(reference, file.read(_HEAD))
            with self.read(reference.file, file, str(path)) as film:
                check_frames(reference.file, film.container.format.name, file)
                yield film

    @contextmanager
    def read(self, name: str, file: BinaryIO, source: Any) -> Iterator["OpenFilm"]:
        """Yield a film, open inside of the block.

        Args:
            name: Its path or URL, for errors.
            file: Its bytes, for its type and size.
            source: What FFmpeg reads: its path, or ``file``.

        Raises:
            FileError: It is no film, damaged, or too long.
        """
        import av

        file.seek(0)
        head = file.read(_HEAD)
        form = _FORMATS.get(type_of_content(head) or "") or _MPEG.get(head[:4])
        if form is None:
            raise FileError(name, "is no film or sound by its first bytes", LEAVE_OUT)
        check_complete(name, form, file)
        with decoding_film(name, "read"):
            lenient = int(av.__version__.split(".")[0]) >= _LENIENT
            options: Any = {} if lenient else {"metadata_errors": "ignore"}
            container = av.open(source, format=form, **options)
        with container:
            film = OpenFilm(name, container)
            told = film.told_seconds
            if told is not None:
                self.check_length(name, told)
            yield film

    def check_length(self, name: str, seconds: float) -> None:
        """Check a duration."""
        if seconds > self._max_seconds:
            problem = f"has more than max_seconds={self._max_seconds:g} seconds"
            raise FileError(name, problem, "raise the limit, or leave the file out")


class VideoFile(HeadFile[VideoSource]):
    """The film of a record, of which no more is read than FFmpeg asks for."""

    @cached_property
    def facts(self) -> VideoFacts:
        """The facts in its head."""
        with self.opened() as file, self._source.read(self.name, file, file) as film:
            return film.facts()


class OpenFilm:
    """An open film."""

    def __init__(self, name: str, container: Any) -> None:
        self.name, self.container = name, container

    @property
    def pictures(self) -> Any:
        """The stream of pictures of PyAV, the first one."""
        streams = self.container.streams.video
        if not streams:
            raise FileError(self.name, "has no pictures", LEAVE_OUT)
        return streams[0]

    @property
    def told_seconds(self) -> float | None:
        """The duration of the pictures that the file states, else that of the file.

        ``None`` if it states none; FFmpeg then guesses by the bit rate, and may be far off.
        """
        if self._guessed:
            return None
        streams = self.container.streams.video
        if streams and streams[0].duration is not None:
            return float(streams[0].duration * streams[0].time_base)
        told = self.container.duration
        return None if told is None else told / _MICROSECONDS

    @property
    def _guessed(self) -> bool:
        return self.container.format.name in _GUESSING

    def facts(self) -> VideoFacts:
        """Return the facts in the head; without a duration there, that of the packets."""
        stream, told = self.pictures, self.told_seconds
        context, rate = stream.codec_context, stream.average_rate
        if context is None or not context.width or not context.height:
            raise FileError(self.name, "has pictures of an unknown codec or size", LEAVE_OUT)
        seconds = self._seconds_of_packets() if told is None else told
        if stream.frames > max(1, _MOST_RATE * seconds):
            problem = f"is damaged: it declares {stream.frames:,} pictures in {seconds:g} seconds"
            raise FileError(self.name, problem, LEAVE_OUT)
        return VideoFacts(
            seconds,
            context.width,
            context.height,
            float(rate or 0),
            context.codec.canonical_name,
            len(self.container.streams.audio),
        )

    def _seconds_of_packets(self) -> float:
        with decoding_film(self.name):
            return max(map(_end, self.container.demux(self.pictures)), default=0.0)

    def decoded(self, stream: Any) -> Iterator[Any]:
        """Yield the frames of a stream in the order of time, and read all streams to their end."""
        end = 0.0
        with decoding_film(self.name):
            for packet in self.container.demux():
                end = max(end, _end(packet))
                if packet.stream is stream:
                    yield from packet.decode()
        told = None if self._guessed else self.container.duration
        if told is not None and end < told / _MICROSECONDS - _SLACK:
            problem = f"is truncated: it declares {told / _MICROSECONDS:g} seconds, and has {end:g}"
            raise FileError(self.name, problem, LEAVE_OUT)

    def decoded_pictures(self) -> Iterator[Any]:
        """Yield the pictures of PyAV in the order of time, and read all streams to their end."""
        frame = None
        for frame in self.decoded(self.pictures):
            yield self._checked(frame)
        if frame is None:
            raise FileError(self.name, "has no pictures", LEAVE_OUT)

    def _checked(self, frame: Any) -> Any:
        if frame.is_corrupt:
            raise FileError(self.name, f"is damaged at second {frame.time or 0:g}", LEAVE_OUT)
        if frame.width * frame.height > MAX_PIXELS:
            problem = (
                f"has pictures of {frame.width} x {frame.height} pixels, more than {MAX_PIXELS:,}"
            )
            raise FileError(self.name, problem, LEAVE_OUT)
        return frame


@contextmanager
def decoding_film(file: str, verb: str = "decoded") -> Iterator[None]:
    """Raise errors of FFmpeg as the error of a file."""
    import av

    with decoding(file, verb):
        try:
            yield
        except av.FFmpegError as error:  # also lack of memory for a size that is damaged
            raise ValueError(error.strerror) from None


def _end(packet: Any) -> float:
    """Return the time at which a packet ends, in seconds from the beginning of its track."""
    if packet.pts is None:
        return 0.0
    first = packet.stream.start_time or 0
    return float((packet.pts - first + (packet.duration or 0)) * packet.time_base)
