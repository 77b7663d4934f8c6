"""``images.Check``: keep images that can be decoded, by format, mode and number of pictures."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dagster_dataops.datasets.file_values.completeness.whole_content import check_whole
from dagster_dataops.datasets.file_values.image_pixels import FORMATS
from dagster_dataops.errors import FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.file_column import FileCheck
from dagster_dataops.library.images.image_files import (
    MAX_BYTES,
    MAX_PIXELS,
    ImageFile,
    ImageSource,
    decoding_image,
    images,
)
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record


class Check(FileCheck, images):
    """Keep images that can be decoded whole, of certain formats and modes.

    Reads the file in ``input_key="file"``, and decodes all of its pictures. A file that is
    damaged, empty, of too many pixels or no image is an error of its record, with path and reason;
    with ``on_error="drop"`` it is dropped for the reason ``broken``. A file that cannot be reached,
    or has more than ``max_bytes``, is an error in any case.

    Signals ``image_format`` and ``image_mode`` as Pillow names them, ``image_width`` and
    ``image_height`` of the upright image, ``image_frames``; reasons ``broken``, ``format``,
    ``mode``, ``animated``. Pages of a TIFF file count as pictures of an animation; a second picture
    in a JPEG file, as some cameras write, does not. Needs the extra ``images``.

    Source: the decoders of Pillow, which do without the end of a PNG or GIF file; it must be there.
    Data-Juicer checks images only where it loads them.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        formats: Names of the formats to keep, such as ``["JPEG", "PNG"]``; ``None`` for all.
        modes: Names of the modes to keep, such as ``["RGB", "L"]``; ``None`` for all.
        allow_animated: Whether files of several pictures are kept.
        max_pixels: Most pixels of all pictures of a file; one picture has at most 89,478,485.
        max_bytes: Most bytes of a file.
    """

    names = ("image_format", "image_mode", "image_width", "image_height", "image_frames")

    def __init__(
        self,
        *,
        input_key: str = "file",
        formats: Collection[str] | None = None,
        modes: Collection[str] | None = None,
        allow_animated: bool = True,
        max_pixels: PositiveInt = 1_000_000_000,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in formats or ():
            check_choice("formats", name, FORMATS)
        self._images = ImageSource(
            "images.Check", input_key, min(MAX_PIXELS, max_pixels), max_bytes
        )
        self._formats, self._modes = formats, modes
        self._animated, self._max_pixels = allow_animated, max_pixels

    @override
    def reached(self, record: Record) -> AbstractContextManager[ImageFile]:
        image = self._images.of(record)
        image.read()
        return nullcontext(image)

    @override
    def measured(self, file: ImageFile) -> tuple[Any, ...]:
        mode, left = file.mode, self._max_pixels
        for number in range(file.frames):
            with decoding_image(file.name):
                file.opened.seek(number)
            width, height = file.opened.size
            left -= width * height
            if left < 0:
                problem = f"has more than max_pixels={self._max_pixels:,} pixels in its pictures"
                raise FileError(file.name, problem, "raise the limit, or leave the file out")
            file.decoded()
        with decoding_image(file.name):
            file.opened.seek(0)
            check_whole(file.data)
        return file.format, mode, *file.size, file.frames

    @override
    def reason(self, signals: Mapping[str, Any]) -> str | None:
        if self._formats is not None and signals["image_format"] not in self._formats:
            return "format"
        if self._modes is not None and signals["image_mode"] not in self._modes:
            return "mode"
        return "animated" if signals["image_frames"] > 1 and not self._animated else None
