"""`SampleDecoder`: values of the parts of samples, chosen by suffix."""

import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.foundation.override import override
from dagster_dataops.training.decoding.image_decoding import (
    check_packages,
    decoded_image,
    image_form,
)

IMAGES: Final = frozenset(
    {
        *("apng", "bmp", "dib", "gif", "ico", "jfif", "jp2", "jpe", "jpeg", "jpg", "pbm", "pcx"),
        *("pgm", "png", "pnm", "ppm", "tga", "tif", "tiff", "webp"),
    }
)
"""The suffixes of images."""


class FileDecoder(Protocol):
    """Makes values of the content of files."""

    def decode(self, name: str, data: bytes, /) -> Any:
        """Return the value of a file.

        Args:
            name: The name of the file; its suffix tells what it holds.
            data: Its content.
        """
        ...


Decoder: TypeAlias = FileDecoder | Literal["auto"] | None
"""A decoder; ``None`` for bytes; ``auto`` for bytes in crude datasets, values in all others."""


class SampleDecoder:
    """Makes values of the parts of samples by suffix, as Energon's decoder of the same name does.

    ``txt``, ``text`` and ``transcript`` become texts; ``json`` and ``jsn`` their values; ``cls``,
    ``cls2``, ``index``, ``inx`` and ``id`` integers; ``npy`` an array, ``npz`` a dict of arrays;
    the formats that Pillow reads, such as ``jpg``, ``png`` and ``webp``, images. With a further
    suffix ``gz`` they are decompressed. All others stay bytes: audio and video too, and pickled
    objects, which could run code.

    Args:
        image_decode: What an image becomes: ``pil`` (an image of Pillow), ``torch`` (a tensor of
            shape ``(channels, height, width)``) or no prefix (an array of shape ``(height, width,
            channels)``), then ``l``, ``rgb`` or ``rgba``, then ``8`` for integers from 0 to 255 in
            place of floats from 0 to 1. So ``torchrgb``, ``rgb8`` or ``pill``.

    Raises:
        ConfigurationError: ``image_decode`` is no such text.

    Example:
        >>> SampleDecoder().decode("000.json", b'{"n": 1}')
        {'n': 1}
    """

    def __init__(self, *, image_decode: str = "torchrgb") -> None:
        self._form = image_form(image_decode)
        self.image_decode = image_decode

    def decode(self, name: str, data: bytes, /) -> Any:
        """Return the value of a file.

        Args:
            name: The name of the file, or its suffix alone.
            data: Its content.

        Raises:
            MissingExtraError: A package that the format needs is not installed.
            ValueError: The content is not what the suffix says. The error has the name in a note.
        """
        suffix, content = _suffix(name), data
        try:
            if suffix == "gz":
                suffix, content = _suffix(name[:-3]), gzip.decompress(data)
            if suffix in IMAGES:
                return decoded_image(content, self._form)
            value = _VALUES.get(suffix)
            return content if value is None else value(content)
        except MissingExtraError:
            raise
        except Exception as error:
            error.add_note(f"(decoding {name}, {len(data):,} bytes)")
            raise

    def check(self, names: Iterable[str]) -> None:
        """Check that the packages are installed which files of these names need.

        Raises:
            MissingExtraError: One is not.
        """
        if any(_suffix(name.removesuffix(".gz")) in IMAGES for name in names):
            check_packages(self._form)

    def config(self) -> dict[str, Any]:
        """Return the options as JSON."""
        return {"image_decode": self.image_decode}

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleDecoder) and self.config() == other.config()

    @override
    def __hash__(self) -> int:
        return hash(self.image_decode)

    @override
    def __repr__(self) -> str:
        return f"SampleDecoder(image_decode={self.image_decode!r})"


def decoded_parts(sample: Mapping[str, Any], decoder: FileDecoder) -> dict[str, Any]:
    """Return a crude sample with the values of its parts."""
    return {
        name: decoder.decode(f"{sample['__key__']}.{name}", value)
        if isinstance(value, bytes) and not name.startswith("__")
        else value
        for name, value in sample.items()
    }


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _array(data: bytes) -> Any:
    return _numpy().load(io.BytesIO(data), allow_pickle=False)


def _arrays(data: bytes) -> dict[str, Any]:
    with _array(data) as file:
        return dict(file)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise MissingExtraError("decoding NumPy arrays", "images") from None
    return numpy


_VALUES: Final[Mapping[str, Callable[[bytes], Any]]] = {
    **dict.fromkeys(("txt", "text", "transcript"), bytes.decode),
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), int),
    **dict.fromkeys(("json", "jsn"), json.loads),
    "npy": _array,
    "npz": _arrays,
}
