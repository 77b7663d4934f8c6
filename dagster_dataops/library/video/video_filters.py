"""``video.Duration`` and ``video.Check``: filters of films."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dagster_dataops.files import FileReference
from dagster_dataops.foundation.override import override
from dagster_dataops.library.audio.audio_files import Seconds
from dagster_dataops.library.file_column import FileCheck, FileFilter
from dagster_dataops.library.filters.rules import bounds
from dagster_dataops.library.video.video_files import (
    MAX_BYTES,
    MAX_SECONDS,
    VideoFile,
    VideoSource,
    video,
)
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, PositiveInt
from dagster_dataops.records import Record


class Duration(FileFilter, video):
    """Keep films of ``min_seconds`` to ``max_seconds`` seconds.

    Reads the head of the file in ``input_key="file"``, if that states the duration: the one of the
    first video stream, else of the file, as PyAV has it. MPEG files state none: there, all packets
    are read, and none is decoded. Of files above 1 MiB, size and version are checked, not the
    digest. ``None`` is no limit. Signal ``video_seconds``;
    reasons ``low_video_seconds``, ``high_video_seconds``. Needs the extra ``video``.

    Source: ``video_duration_filter`` of Data-Juicer, which rounds to whole seconds.

    Args:
        min_seconds: Shortest duration to keep; ``None`` for no limit.
        max_seconds: Longest duration to keep; ``None`` for no limit.
        input_key: Key of the file: a column, or a selector of one element.
        max_bytes: Most bytes of a file; a larger one is an error.
    """

    def __init__(
        self,
        *,
        min_seconds: AtLeastZeroFloat | None = None,
        max_seconds: AtLeastZeroFloat | None = None,
        input_key: str = "file",
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._films = VideoSource("video.Duration", input_key, float("inf"), max_bytes)
        seconds = bounds("video_seconds", lambda film: film.facts.seconds, min_seconds, max_seconds)
        self.rules = seconds

    @override
    def subject(self, record: Record) -> VideoFile:
        return self._films.of(record)


class Check(FileCheck, video):
    """Keep films that can be decoded whole, of certain codecs.

    Reads the file in ``input_key="file"``, and decodes all of its pictures. A file that is damaged,
    truncated by half a second or more, empty, too long or no film is an error of its record, with
    path and reason; with ``on_error="drop"`` it is dropped for the reason ``broken``. A file that
    cannot be reached, or has more than ``max_bytes``, is an error in any case. MP4, QuickTime,
    Matroska, WebM, AVI, FLV, MPEG, Ogg and ASF are read.

    Signals ``video_seconds``, ``video_width`` and ``video_height`` as stored, ``video_rate``
    (pictures a second), ``video_codec`` as FFmpeg names it, ``video_sound`` (the number of audio
    tracks); reasons ``broken``, ``codec``, ``silent``. Needs the extra ``video``.

    Source: the decoders of FFmpeg, which go on behind damaged parts. Data-Juicer checks films
    only where it loads them.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        codecs: Names of the codecs to keep, such as ``["h264", "vp9"]``; ``None`` for all.
        allow_silent: Whether films without an audio track are kept.
        max_seconds: Longest duration; a longer film is an error, before it is decoded.
        max_bytes: Most bytes of a file.
    """

    names = (
        "video_seconds", "video_width", "video_height", "video_rate", "video_codec", "video_sound",
    )  # fmt: skip

    def __init__(
        self,
        *,
        input_key: str = "file",
        codecs: Collection[str] | None = None,
        allow_silent: bool = True,
        max_seconds: Seconds = MAX_SECONDS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._films = VideoSource("video.Check", input_key, max_seconds, max_bytes)
        self._codecs, self._silent = codecs, allow_silent

    @override
    @contextmanager
    def reached(self, record: Record) -> Iterator[tuple[FileReference, Path]]:
        reference = self._films.column.reference(record)
        with self._films.reached(reference) as path:
            yield reference, path

    @override
    def measured(self, file: tuple[FileReference, Path]) -> tuple[Any, ...]:
        with self._films.opened(*file) as film:
            facts, first, last = film.facts(), None, 0.0
            if film.told_seconds is None:
                film.container.seek(0)
            for frame in film.decoded_pictures():
                first = frame.time or 0.0 if first is None else first
                last = max(last, (frame.time or 0.0) - first)
                self._films.check_length(film.name, last)
        return facts

    @override
    def reason(self, signals: Mapping[str, Any]) -> str | None:
        if self._codecs is not None and signals["video_codec"] not in self._codecs:
            return "codec"
        return "silent" if not self._silent and not signals["video_sound"] else None
