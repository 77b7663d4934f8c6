"""Whether a film or sound is as long as it declares: FFmpeg takes a part of one for a whole."""

import io
import mmap
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

from dagster_dataops.datasets.file_values.completeness.containers import (
    check_aiff,
    check_wav,
    end_of_boxes,
    end_of_riff,
    end_of_segment,
)
from dagster_dataops.datasets.file_values.completeness.flac_frames import check_flac
from dagster_dataops.datasets.file_values.completeness.ogg_pages import check_ogg, check_ogg_end
from dagster_dataops.datasets.file_values.completeness.sound_frames import check_adts, check_mp3
from dagster_dataops.errors import FileError
from dagster_dataops.library.file_column import LEAVE_OUT, decoding


def check_complete(name: str, form: str, file: BinaryIO) -> None:
    """Check that a film or sound is not cut off; only its head and its end are read."""
    size = file.seek(0, io.SEEK_END)
    end = _ENDS.get(form, _open_end)
    told = end(file, size)
    if told > size:
        raise FileError(
            name, f"is truncated: it declares {told:,} bytes, and has {size:,}", LEAVE_OUT
        )
    chunks = _CHUNKS.get(form)
    if chunks is not None:
        with decoding(name, "read"):
            chunks(file)
    file.seek(0)


def check_frames(name: str, form: str, file: BinaryIO) -> None:
    """Check the frames or pages of a sound, or of a film in Ogg; the whole file is read."""
    check = _FRAMES.get(form)
    if check is not None:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, decoding(name, "read"):
            check(data)


def _open_end(file: BinaryIO, size: int) -> int:
    """Return the end of a file that does not tell one."""
    del file
    return size


_ENDS: Final[dict[str, Callable[[BinaryIO, int], int]]] = {
    "avi": end_of_riff, "wav": end_of_riff, "mov": end_of_boxes, "matroska": end_of_segment,
}  # fmt: skip
_CHUNKS: Final[dict[str, Callable[[BinaryIO], None]]] = {
    "wav": check_wav, "aiff": check_aiff, "ogg": check_ogg_end,
}  # fmt: skip
_FRAMES: Final[Mapping[str, Callable[[Any], None]]] = {
    "aac": check_adts, "flac": check_flac, "mp3": check_mp3, "ogg": check_ogg,
}  # fmt: skip
