"""`ImageSource` and `ImageFile`: images of records, decoded within limits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from typing import Annotated, Any, BinaryIO, Final, Literal, TypeAlias

from annotated_types import Interval

from dagster_dataops.data import data_register
from dagster_dataops.datasets.file_values.image_pixels import ONE_PICTURE, readable, shallow
from dagster_dataops.datasets.file_values.media_types import (
    HEAD_BYTES,
    same_type,
    type_of_content,
)
from dagster_dataops.errors import FileError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.file_column import (
    LEAVE_OUT,
    FileColumn,
    FileSource,
    HeadFile,
    RecordFile,
    decoding,
)
from dagster_dataops.library.images.avif_heads import avif_size
from dagster_dataops.library.images.image_heads import (
    has_late_orientation,
    orientation_of,
    webp_size,
)
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.records import Record

images: Any = data_register.new_group("images")

Animated: TypeAlias = Literal["error", "first"]
MaxPixels: TypeAlias = Annotated[int, Interval(ge=1, le=178_956_970)]  # Pillow refuses more
MAX_PIXELS: Final = 89_478_485  # Pillow warns about more
MAX_BYTES: Final = 256 << 20


def pillow(operator: str) -> Any:
    """Return the module ``PIL.Image``, with numpy at hand."""
    with needs_extra(operator, "images"):
        import numpy as np  # noqa: F401
        from PIL import Image
    return Image


class ImageSource(FileSource):
    """The images that an input key names.

    Args:
        operator: Name of the operator, for the error about missing packages.
        input_key: Key of the file: a column, or a selector of one element.
        max_pixels: Most pixels of an image.
        max_bytes: Most bytes of a file.
        animated: What is done with files of several pictures: ``error``, or take the ``first``.
    """

    def __init__(
        self,
        operator: str,
        input_key: str,
        max_pixels: int = MAX_PIXELS,
        max_bytes: int = MAX_BYTES,
        animated: str = "error",
    ) -> None:
        pillow(operator)
        super().__init__(FileColumn(input_key, "image/"), max_bytes)
        self._max_pixels, self._animated = max_pixels, animated

    def size_of(self, record: Record) -> "ImageSize":
        """Return the size of the image of a record; its file is read on first use."""
        return ImageSize(self, record)

    def of(self, record: Record) -> "ImageFile":
        """Return the image of a record; its file is read on first use."""
        return ImageFile(self, record)

    def opened(self, file: str, data: BinaryIO) -> Any:
        """Return an image as Pillow opens it, not decoded."""
        from PIL import Image, UnidentifiedImageError

        with decoding_image(file, "read"):
            try:
                image = Image.open(data, formats=readable())
            except UnidentifiedImageError:
                raise _unidentified(file, data) from None
        self.check_size(file, image.size)
        return image

    def check_size(self, file: str, size: Sequence[int]) -> None:
        """Check the number of pixels of an image."""
        width, height = size
        if width * height > self._max_pixels:
            problem = f"has {width} x {height} pixels, more than max_pixels={self._max_pixels:,}"
            raise FileError(file, problem, "raise the limit, or leave the file out")

    def check_still(self, file: str, frames: int) -> None:
        """Check the number of pictures of a file."""
        if frames > 1 and self._animated == "error":
            problem = f"has {counted(frames, 'pictures')}, where one is needed"
            raise FileError(file, problem, "take the first with animated='first', or leave it out")


class ImageFile(RecordFile[ImageSource]):
    """The image of a record; each attribute is read or computed when it is used.

    All attributes raise `FileError` if the file cannot be used.
    """

    @cached_property
    def opened(self) -> Any:
        """The image as Pillow opens it, not decoded; its size is within the limit."""
        return self._source.opened(self.name, BytesIO(self.data))

    @cached_property
    def frames(self) -> int:
        """The number of pictures, above 1 for animations and for pages of a TIFF file."""
        if self.format in ONE_PICTURE or self.opened.format in ONE_PICTURE:
            return 1
        with decoding_image(self.name, "read"):
            return int(getattr(self.opened, "n_frames", 1))

    @property
    def format(self) -> str:
        """The format, as Pillow names it; JPEG files with several pictures are ``JPEG``."""
        name = str(self.opened.format)
        return {"MPO": "JPEG", "DIB": "BMP"}.get(name, name)

    @property
    def mode(self) -> str:
        """The mode, as Pillow names it."""
        return str(self.opened.mode)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright image, in pixels."""
        return _upright_size(self.name, self.opened, BytesIO(self.data))

    def decoded(self) -> Any:
        """Return the image decoded, as it is stored; of several pictures the first."""
        with decoding_image(self.name):
            self.opened.load()
        return self.opened

    @cached_property
    def still(self) -> Any:
        """The decoded image, upright by its metadata, in its own mode."""
        self._source.check_still(self.name, self.frames)
        picture = self.decoded()
        turn = _turn(self._orientation())
        return picture if turn is None else picture.transpose(turn)

    @cached_property
    def rgb(self) -> Any:
        """The decoded image in mode RGB, upright; transparency is left out."""
        return shallow(self.name, self.still).convert("RGB")

    @cached_property
    def grey(self) -> Any:
        """The luma of the decoded image, in mode L (0.299 R + 0.587 G + 0.114 B), upright."""
        return shallow(self.name, self.still).convert("L")

    @property
    def is_upright(self) -> bool:
        """Whether the image is upright as it is stored."""
        return self._orientation() == 1

    def _orientation(self) -> int:
        return _orientation(self.name, self.opened)


class ImageSize(HeadFile[ImageSource]):
    """The size of the image of a record; only the head of the file is decoded."""

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright image, in pixels."""
        with self.opened() as file:
            with decoding_image(self.name, "read"):
                size = webp_size(file) or avif_size(file)
            if size is None:
                return _upright_size(self.name, self._source.opened(self.name, file), file)
            self._source.check_size(self.name, size)
            return size


def _unidentified(file: str, data: BinaryIO) -> FileError:
    """Return the error for a file that Pillow does not open."""
    from PIL import Image

    data.seek(0)
    kind, formats = type_of_content(data.read(HEAD_BYTES)), ", ".join(readable())
    if kind is None:
        problem = f"cannot be read: it is no image of the formats {formats}"
        return FileError(file, problem, LEAVE_OUT)
    if any(same_type(kind, Image.MIME.get(name, "")) for name in readable()):
        problem = f"cannot be read: it begins as {kind}, and its head is damaged"
        return FileError(file, problem, LEAVE_OUT)
    convert = "convert it to one of these before, or leave it out"
    return FileError(file, f"is {kind}, and files of the formats {formats} are read", convert)


def _upright_size(name: str, image: Any, file: BinaryIO) -> tuple[int, int]:
    """Return width and height of an image, as its metadata turns it."""
    with decoding_image(name):
        if image.format == "PNG" and has_late_orientation(file, image.info):
            image.load()
    width, height = image.size
    return (height, width) if _orientation(name, image) > 4 else (width, height)


def _orientation(file: str, image: Any) -> int:
    with decoding_image(file, "turned upright"):
        return orientation_of(image.info)


@contextmanager
def decoding_image(file: str, verb: str = "decoded") -> Iterator[None]:
    """Raise errors of Pillow as the error of a file."""
    from PIL import Image

    with decoding(file, verb):
        try:
            yield
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            msg = str(error).partition(", ")[0]  # its pixels, and the most that Pillow opens
            raise ValueError(msg) from None


def _turn(orientation: int) -> Any:
    """Return the transposition that makes an image upright; ``None`` for none."""
    from PIL.Image import Transpose

    return {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }.get(orientation)
