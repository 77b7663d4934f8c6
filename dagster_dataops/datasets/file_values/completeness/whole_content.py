"""`check_whole`: refuse files that are cut off, or whose checksums are wrong, without decoders."""

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Final

from dagster_dataops.datasets.file_values.completeness.containers import (
    check_aiff,
    check_boxes,
    check_riff,
    check_segment,
    check_wav,
)
from dagster_dataops.datasets.file_values.completeness.documents import check_archive, check_pdf
from dagster_dataops.datasets.file_values.completeness.flac_frames import check_flac
from dagster_dataops.datasets.file_values.completeness.ogg_pages import check_ogg
from dagster_dataops.datasets.file_values.completeness.pictures import (
    check_gif,
    check_jpeg,
    check_png,
)
from dagster_dataops.datasets.file_values.completeness.sound_frames import check_adts, check_mp3
from dagster_dataops.datasets.file_values.media_types import type_of_content

_CHECKS: Final[Mapping[str, tuple[Callable[[bytes], None], ...]]] = {
    "audio/aac": (check_adts,),
    "audio/aiff": (lambda data: check_aiff(BytesIO(data)),),
    "audio/flac": (check_flac,),
    "audio/mp4": (check_boxes,),
    "audio/mpeg": (check_mp3,),
    "audio/ogg": (check_ogg,),
    "audio/wav": (lambda data: check_wav(BytesIO(data)),),
    "application/epub+zip": (check_archive,),
    "application/pdf": (check_pdf,),
    "application/zip": (check_archive,),
    "image/avif": (check_boxes,),
    "image/gif": (check_gif,),
    "image/heic": (check_boxes,),
    "image/heif": (check_boxes,),
    "image/jpeg": (check_jpeg,),
    "image/png": (check_png,),
    "image/webp": (check_riff,),
    "video/3gpp": (check_boxes,),
    "video/mp4": (check_boxes,),
    "video/quicktime": (check_boxes,),
    "video/webm": (check_segment,),
    "video/x-matroska": (check_segment,),
    "video/x-msvideo": (check_riff,),
}
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT: Final = "application/vnd.oasis.opendocument."


def check_whole(data: bytes) -> None:
    """Check that a file is not cut off, as far as its format shows; others pass.

    Nothing is decoded, so damage in the middle is found only where a format has checksums: in Ogg
    and PNG files, and in the heads of the frames of FLAC files.

    Args:
        data: The content of the file.

    Raises:
        ValueError: It is cut off or damaged.
    """
    kind = type_of_content(data) or ""
    if kind.startswith((_OFFICE, _OPEN_DOCUMENT)):
        kind = "application/zip"
    for check in _CHECKS.get(kind, ()):
        check(data)
