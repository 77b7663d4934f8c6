"""``video.Frames`` and ``video.Audio``: pictures and sound of a film, as files."""

from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from typing import Any, Final, Literal

from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from dagster_dataops.library.audio.audio_files import Seconds, finite
from dagster_dataops.library.audio.sound_transforms import Format as SoundFormat
from dagster_dataops.library.audio.sound_transforms import encoded as encoded_sound
from dagster_dataops.library.file_column import LEAVE_OUT, decoding
from dagster_dataops.library.images.encoding import SETTINGS, Quality
from dagster_dataops.library.video.video_files import (
    MAX_BYTES,
    MAX_SECONDS,
    OpenFilm,
    VideoSource,
    decoding_film,
    video,
)
from dagster_dataops.operators.options.ranges import Fraction, PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_FINE: Final = frozenset({"s32", "s32p", "s64", "s64p"})  # samples of more than 16 bits
_TURN: Final = 90  # degrees


class Frames(video):
    """Take pictures of a film, a record for each.

    Reads the file in ``input_key="file"`` and writes the picture to ``output_key="frame"``. The
    record of a picture has the other columns too, its number in ``index_key="frame_number"``, and
    its time in seconds from the first picture in ``time_key="frame_time"``.

    ``by="time"`` takes the first picture at or after each multiple of ``seconds``. ``by="scene"``
    takes the first picture of each scene: the first one of the film, and those that differ from the
    one before by a score above ``threshold``, FFmpeg's ``scene`` of 0 to 1. Pictures are those of
    PyAV's ``to_image``, turned upright. More than ``max_frames`` are an error. The bytes depend on
    the versions of FFmpeg in PyAV and of Pillow. Needs the extra ``video``.

    Source: ``video_extract_frames_mapper`` and ``video_split_by_scene_mapper`` of Data-Juicer; the
    filter ``select`` of FFmpeg.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        output_key: Column of the picture.
        by: ``time`` or ``scene``.
        seconds: Time between pictures.
        threshold: Score from which a picture begins a scene.
        index_key: Column of the number of the picture, from 0; ``None`` writes none.
        time_key: Column of the time in seconds; ``None`` writes none.
        format: ``jpeg`` or ``png``.
        quality: Quality of JPEG, 1 to 100.
        max_frames: Most pictures of a film.
        max_seconds: Longest duration; a longer film is an error, before it is decoded.
        max_bytes: Most bytes of a file; a larger one is an error.
    """

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "frame",
        *,
        by: Literal["time", "scene"] = "time",
        seconds: Seconds = 1.0,
        threshold: Fraction = 0.3,
        index_key: str | None = "frame_number",
        time_key: str | None = "frame_time",
        format: Literal["jpeg", "png"] = "jpeg",  # noqa: A002 - the name of the option
        quality: Quality = 90,
        max_frames: PositiveInt = 1000,
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._films = VideoSource("video.Frames", input_key, max_seconds, max_bytes)
        self._threshold = threshold if by == "scene" else None
        self._seconds, self._most = seconds, max_frames
        self._written, self._keys = output_key, (index_key, time_key)
        self._format, self._quality = format, quality

    def forward(self, record: Record) -> list[Record]:
        frames: list[Record] = []
        with self._films.film(record) as film:
            for frame, time in self._chosen(film):
                if len(frames) == self._most:
                    fault = f"has more than max_frames={self._most:,} pictures to take"
                    raise FileError(film.name, fault, "raise the limit, or take fewer pictures")
                written: dict[str, Any] = record | {self._written: self._encoded(film.name, frame)}
                values = len(frames), time
                written.update({k: value for k, value in zip(self._keys, values, strict=True) if k})
                frames.append(written)
        return frames

    def _chosen(self, film: OpenFilm) -> Iterator[tuple[Any, float]]:
        first = None
        wanted = 0
        frames = self._timed(film)
        for frame, time in frames if self._threshold is None else self._scenes(film, frames):
            first = time if first is None else first
            passed = time - first
            if self._threshold is not None or passed >= wanted * self._seconds:
                wanted = int(passed / self._seconds) + 1
                yield frame, passed

    def _timed(self, film: OpenFilm) -> Iterator[tuple[Any, float]]:
        """Yield the frames with their times in seconds."""
        first = None
        for frame in film.decoded_pictures():
            if frame.time is None:
                raise FileError(film.name, "has a picture without a time", LEAVE_OUT)
            first = frame.time if first is None else first
            self._films.check_length(film.name, frame.time - first)
            yield frame, float(frame.time)

    def _scenes(
        self, film: OpenFilm, frames: Iterator[tuple[Any, float]]
    ) -> Iterator[tuple[Any, float]]:
        """Yield the first frame, and those that begin a scene."""
        import av

        graph = av.filter.Graph()
        source = graph.add_buffer(template=film.pictures)
        chosen = graph.add("select", f"eq(n,0)+gt(scene,{self._threshold})")
        sink = graph.add("buffersink")
        source.link_to(chosen)
        chosen.link_to(sink)
        with decoding_film(film.name):
            graph.configure()
            for frame, _ in frames:
                graph.vpush(frame)
                yield from _pulled(graph)
            graph.vpush(None)
            yield from _pulled(graph)

    def _encoded(self, name: str, frame: Any) -> File:
        with decoding_film(name):
            picture = frame.to_image()
        turned = round((frame.rotation or 0) / _TURN) * _TURN % 360
        picture = picture.rotate(turned, expand=True) if turned else picture
        settings = {**SETTINGS[self._format]}
        if self._format == "jpeg":
            settings["quality"] = self._quality
        written = BytesIO()
        picture.save(written, self._format.upper(), **settings)
        return File(written.getvalue(), f"image/{self._format}")


def _pulled(graph: Any) -> Iterator[tuple[Any, float]]:
    """Yield the frames that a graph of filters has ready."""
    import av

    while True:
        try:
            frame = graph.vpull()
        except (av.BlockingIOError, av.EOFError):
            return
        yield frame, float(frame.time)


class Audio(video):
    """Take the sound of a film, or of a file in a format that ``audio`` does not read.

    Reads the file in ``input_key="file"`` and writes the sound of its first audio track to
    ``output_key="audio"``, with its rate and channels, 16 bits a sample or 24 if it has more, and
    without metadata. M4A, AAC and AMR files are read, too. A sound that is cut off, or whose
    checksums are wrong, is an error of its record, as in ``audio.Check``. A film without a track is
    an error, too, or with ``missing="drop"`` dropped for the reason ``no_audio``. The bytes depend
    on the versions of FFmpeg in PyAV and, for FLAC, of libsndfile and libFLAC. Needs the extra
    ``video``.

    Source: the decoders of FFmpeg; ``audio_ffmpeg_wrapped_mapper`` of Data-Juicer.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        output_key: Column of the sound.
        missing: ``error``, or ``drop`` films without a track.
        format: ``flac`` or ``wav``.
        max_seconds: Longest duration; a longer film is an error, before it is decoded.
        max_bytes: Most bytes of a file; a larger one is an error.
    """

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "audio",
        *,
        missing: Literal["error", "drop"] = "error",
        format: SoundFormat = "flac",  # noqa: A002 - the name of the option
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        kinds = ("video/", "audio/")
        self._films = VideoSource("video.Audio", input_key, max_seconds, max_bytes, kinds)
        self._written, self._drops, self._format = output_key, missing == "drop", format

    def forward(self, record: dict[str, Any]) -> Any:
        with self._films.film(record) as film:
            tracks = film.container.streams.audio
            if not tracks and self._drops:
                return Drop("no_audio")
            if not tracks:
                raise FileError(film.name, "has no audio track", LEAVE_OUT)
            record[self._written] = self._sound(film, tracks[0])
        return record

    def _sound(self, film: OpenFilm, track: Any) -> File:
        context = track.codec_context
        if context is None or context.format is None:
            raise FileError(film.name, "has an audio track of an unknown codec", LEAVE_OUT)
        if context.name == "flac":  # leave out frames with another checksum; see `_check_count`
            context.options = {**context.options, "err_detect": "crccheck+explode"}
        subtype = "PCM_24" if context.format.name in _FINE else "PCM_16"
        form = context.rate, context.layout.nb_channels, subtype, self._format
        with decoding(film.name, f"written as {self._format}"):
            return encoded_sound(self._blocks(film, track), *form)

    def _blocks(self, film: OpenFilm, track: Any) -> Iterator[Any]:
        """Yield the samples as arrays of the shape (frames, channels), from -1 to 1."""
        import av

        context, frames = track.codec_context, 0
        plain = av.AudioResampler("dblp", context.layout, context.rate)
        with decoding_film(film.name):
            for frame in chain(film.decoded(track), [None]):  # None for the last samples
                for part in plain.resample(frame):
                    samples = part.to_ndarray().T
                    frames += len(samples)
                    self._films.check_length(film.name, frames / context.rate)
                    yield finite(samples)
        if not frames:
            raise FileError(film.name, "has no sound in its audio track", LEAVE_OUT)
        if film.container.format.name == "flac":
            _check_count(film.name, track, frames)


def _check_count(name: str, track: Any, frames: int) -> None:
    """Check that a FLAC file has all samples that it declares."""
    seconds = 0 if track.duration is None else track.duration * track.time_base
    told = round(seconds * track.codec_context.rate)
    if frames < told:
        problem = f"is damaged: it declares {told:,} samples, and {frames:,} can be decoded"
        raise FileError(name, problem, LEAVE_OUT)
