"""Decoders of the features of OFRecords: numbers, bytes and images."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import MissingExtraError, StreamDefinitionError
from dagster_dataops.foundation.quantities import counted

ColorSpace: TypeAlias = Literal["BGR", "RGB", "GRAY"]

_TYPES: Final = {
    **{name: name for name in ("int8", "uint8", "int32", "int64", "float32", "float64")},
    "float": "float32",
    "double": "float64",
    "char": "int8",
}
_SPACES: Final = ("BGR", "RGB", "GRAY")


class _Decoder:
    """A function of the features of a record, of which it takes one by name."""

    blob_name: str

    def _values(self, features: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
        """Return the values of the feature."""
        if self.blob_name not in features:
            known = ", ".join(map(repr, features)) or "none"
            msg = f"has no feature {self.blob_name!r}; its features: {known}"
            raise ValueError(msg)
        return features[self.blob_name]

    def _bytes(self, features: Mapping[str, Sequence[Any]]) -> bytes:
        """Return the bytes of a feature with one value."""
        values = self._values(features)
        if len(values) != 1 or not isinstance(values[0], bytes):
            kind = "bytes" if any(isinstance(value, bytes) for value in values) else "no bytes"
            content = f"{counted(len(values), 'values')}, {kind}"
            msg = f"feature {self.blob_name!r} must have one value of bytes; it has {content}"
            raise ValueError(msg)
        return values[0]


@dataclass(frozen=True)
class OFRecordBytesDecoder(_Decoder):
    """Returns the bytes of a feature, as OneFlow's decoder of this name.

    Args:
        blob_name: The name of the feature.

    Example:
        >>> OFRecordBytesDecoder("encoded")({"encoded": [b"abc"]})
        b'abc'
    """

    blob_name: str

    def __call__(self, features: Mapping[str, Sequence[Any]]) -> bytes:
        """Return the bytes.

        Raises:
            ValueError: The record has no such feature, or it has not one value of bytes.
        """
        return self._bytes(features)


@dataclass(frozen=True)
class OFRecordRawDecoder(_Decoder):
    """Returns the numbers of a feature as an array, as OneFlow's decoder of this name.

    Bytes are signed integers of 8 bits each, as in OneFlow. It needs the extra ``ofrecord``.

    Args:
        blob_name: The name of the feature.
        shape: The shape of the array; ``()`` for one number.
        dtype: ``int8``, ``uint8``, ``int32``, ``int64``, ``float32`` or ``float64``.
        dim1_varying_length: Whether a feature may have fewer values than ``shape``. The first
            dimension of its array is shorter then.
        truncate: Whether values behind ``shape`` are left out, and missing ones are 0. Otherwise
            another number of values is an error.
        auto_zero_padding: Whether missing values are 0.

    Raises:
        MissingExtraError: NumPy is not installed.
        StreamDefinitionError: An argument is invalid.

    Example:
        >>> OFRecordRawDecoder("point", (2,), "float32")({"point": [1.5, 2.0]})
        array([1.5, 2. ], dtype=float32)
    """

    blob_name: str
    shape: tuple[int, ...]
    dtype: str
    dim1_varying_length: bool = False
    truncate: bool = False
    auto_zero_padding: bool = False

    def __post_init__(self) -> None:
        """Check the arguments, and that NumPy is there."""
        _numpy("OFRecordRawDecoder")
        object.__setattr__(self, "shape", tuple(self.shape))
        wrong = [size for size in self.shape if type(size) is not int or size < 1]
        if wrong:
            reason = f"shape has {wrong[0]!r}; each dimension is a number of at least 1"
            raise StreamDefinitionError("OFRecordRawDecoder", reason)
        if self.dtype not in _TYPES:
            reason = f"dtype is {self.dtype!r}; it must be one of {', '.join(_TYPES)}"
            raise StreamDefinitionError("OFRecordRawDecoder", reason)
        if self.dim1_varying_length and not self.shape:
            reason = "dim1_varying_length needs a shape with a dimension"
            raise StreamDefinitionError("OFRecordRawDecoder", reason)

    def __call__(self, features: Mapping[str, Sequence[Any]]) -> Any:
        """Return an array of ``shape``; a number of NumPy for the shape ``()``.

        Raises:
            ValueError: The record has no such feature, or another number of values than ``shape``.
        """
        numpy, kind = _numpy("OFRecordRawDecoder"), _TYPES[self.dtype]
        values = self._values(features)
        if any(isinstance(value, bytes) for value in values):
            array = numpy.frombuffer(self._bytes(features), numpy.int8).astype(kind)
        else:
            exact = numpy.asarray(values)
            array = numpy.asarray(values, kind)
            if array.dtype.kind in "iu" and not (array == exact).all():
                msg = f"feature {self.blob_name!r} has values that {self.dtype} cannot hold"
                raise ValueError(msg)
        return self._fitted(numpy, array)

    def _fitted(self, numpy: Any, array: Any) -> Any:
        size, count = math.prod(self.shape), len(array)
        if count > size and self.truncate:
            array = array[:size]
        elif count < size and (self.truncate or self.auto_zero_padding):
            array = numpy.concatenate([array, numpy.zeros(size - count, array.dtype)])
        elif count < size and self.dim1_varying_length:
            row = math.prod(self.shape[1:])
            if count % row == 0:
                return array.reshape(-1, *self.shape[1:])
        if len(array) != size:
            msg = f"feature {self.blob_name!r} has {counted(count, 'values')}, not {size:,}"
            raise ValueError(msg)
        return array.reshape(self.shape) if self.shape else array[0]


@dataclass(frozen=True)
class OFRecordImageDecoder(_Decoder):
    """Returns the image of a feature as an array, as OneFlow's decoder of this name.

    It needs the extra ``ofrecord``. The image is turned as its EXIF data demand.

    Args:
        blob_name: The name of the feature, which has the bytes of an image file.
        color_space: ``BGR``, ``RGB`` or ``GRAY``: the order of the channels.

    Raises:
        MissingExtraError: NumPy or Pillow is not installed.
        StreamDefinitionError: ``color_space`` is unknown.

    Example:
        >>> decode = OFRecordImageDecoder("encoded", color_space="RGB")
        >>> decode(record).shape
        (480, 640, 3)
    """

    blob_name: str
    color_space: ColorSpace = "BGR"

    def __post_init__(self) -> None:
        """Check the color space, and that NumPy and Pillow are there."""
        _numpy("OFRecordImageDecoder")
        _pillow()
        if self.color_space not in _SPACES:
            reason = f"color_space is {self.color_space!r}; it must be one of {', '.join(_SPACES)}"
            raise StreamDefinitionError("OFRecordImageDecoder", reason)

    def __call__(self, features: Mapping[str, Sequence[Any]]) -> Any:
        """Return an array of shape ``(height, width, channels)`` and type ``uint8``.

        Raises:
            ValueError: The record has no such feature, or its bytes are no image.
        """
        numpy, (image, operations) = _numpy("OFRecordImageDecoder"), _pillow()
        data = self._bytes(features)
        try:
            with image.open(io.BytesIO(data)) as opened:
                turned = operations.exif_transpose(opened)
                picture = turned.convert("L" if self.color_space == "GRAY" else "RGB")
        except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
            msg = f"feature {self.blob_name!r} is no image that can be read: {error}"
            raise ValueError(msg) from error
        array = numpy.asarray(picture)
        if self.color_space == "GRAY":
            return array[:, :, None]
        return numpy.ascontiguousarray(array[:, :, ::-1]) if self.color_space == "BGR" else array


def _numpy(feature: str) -> Any:
    try:
        import numpy
    except ModuleNotFoundError:
        raise MissingExtraError(feature, "ofrecord") from None
    return numpy


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ModuleNotFoundError as error:
        if error.name != "PIL":
            raise
        raise MissingExtraError("OFRecordImageDecoder", "ofrecord") from None
    return Image, ImageOps
