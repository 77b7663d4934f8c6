"""`ImageModel`: a model of the user that takes images, a function or an ONNX file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from annotated_types import Gt

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.loaded_files import LoadedFile
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.file_content import FileContent

Fit: TypeAlias = Literal["cover", "stretch", "inside"]
Model: TypeAlias = Callable[[list[Any]], Sequence[Any]] | Annotated[str | Path, FileContent]
Normalization: TypeAlias = Literal["softmax", "sigmoid"]
Means: TypeAlias = Sequence[float]
Deviations: TypeAlias = Sequence[Annotated[float, Gt(0)]]

_CHANNELS: Final = 3
_DIMENSIONS: Final = 4
_TYPES: Final = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How images are prepared for an ONNX model.

    Attributes:
        size: Width and height; ``None`` reads them in the file.
        fit: ``cover``, ``stretch`` or ``inside``: how images are made that large.
        resample: The filter of Pillow.
        mean: Mean of each channel, 0 to 1, which is subtracted.
        std: Standard deviation of each channel, which divides the difference.
    """

    size: int | None
    fit: str
    resample: str
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != _CHANNELS:
                msg = f"{name} must have {_CHANNELS} numbers, for red, green and blue; got {values}"
                raise DefinitionError(msg)

    def pixels(self, picture: Any, size: tuple[int, int], kind: str) -> Any:
        """Return an image as an array of the shape (height, width, 3) and a type of numbers."""
        import numpy as np
        from PIL import Image, ImageOps

        method = Image.Resampling[self.resample.upper()]
        if self.fit == "stretch":
            fitted = picture.resize(size, method)
        else:
            by_pillow = {"cover": ImageOps.fit, "inside": ImageOps.pad}[self.fit]
            fitted = by_pillow(picture, size, method)
        if kind == "uint8":
            return np.asarray(fitted)
        scaled = np.asarray(fitted).astype(np.float32) / np.float32(255)
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        return ((scaled - mean) / std).astype(kind)


class ImageModel:
    """Applies a model to images in mode RGB.

    Args:
        operator: Name of the operator, for errors.
        model: Function from a list of images of Pillow to as many results, or an ``.onnx`` file.
        preparation: How images are prepared for an ONNX file.
        output: Name of its output; ``None`` for the only one.
    """

    def __init__(
        self, operator: str, model: Model, preparation: Preparation, output: str | None
    ) -> None:
        self._function: Callable[[list[Any]], Sequence[Any]] | None = None
        if callable(model):
            self._function = model
        else:
            self._file = LoadedFile(_onnx_model, str(model), operator, preparation, output)

    def __call__(self, pictures: list[Any]) -> list[Any]:
        """Return the results for images in mode RGB, in order.

        An ONNX model gets one image at a time, so that a result does not depend on the others.
        """
        if self._function is None:
            return [self._file.value(picture) for picture in pictures]
        results = list(self._function(pictures))
        if len(results) != len(pictures):
            images = counted(len(pictures), "images")
            msg = f"the model returned {counted(len(results), 'results')} for {images}"
            raise ValueError(msg)
        return results


def _onnx_model(
    path: str, operator: str, preparation: Preparation, output: str | None
) -> Callable[[Any], Any]:
    """Return the function from an image to the output of the model in a file."""
    import numpy as np

    session = _session(path, operator)
    input_ = _input(path, session, preparation.size)
    wanted = _output(path, session, output)

    def result(picture: Any) -> Any:
        pixels = preparation.pixels(picture, input_.size, input_.kind)
        batch = np.ascontiguousarray(pixels.transpose(2, 0, 1) if input_.channels_first else pixels)
        return session.run([wanted], {input_.name: batch[None]})[0][0]

    return result


def _session(path: str, operator: str) -> Any:
    with needs_extra(f"{operator} with an ONNX file", "onnx"):
        import onnxruntime
    if not Path(path).is_file():
        msg = f"model {path!r} is no file; give an ONNX file, or a function"
        raise DefinitionError(msg)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # workers use the cores
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its errors have no common class
        msg = f"model {path!r} cannot be read as ONNX: {error!s:.300}"
        raise DefinitionError(msg) from None


class _Input(NamedTuple):
    """What a model takes."""

    name: str
    kind: str
    size: tuple[int, int]
    channels_first: bool


def _input(path: str, session: Any, size: int | None) -> _Input:
    """Return what a model takes; a size that its file leaves open is the one given."""
    inputs = session.get_inputs()
    shape, kind = inputs[0].shape, _TYPES.get(inputs[0].type)
    fits = len(inputs) == 1 and len(shape) == _DIMENSIONS and _CHANNELS in {shape[1], shape[3]}
    if not fits or kind is None:
        named = ", ".join(f"{input_.name}: {input_.type} {input_.shape}" for input_ in inputs)
        msg = f"model {path!r} takes {named}; it must take one batch of images with 3 channels"
        raise DefinitionError(msg)
    first = shape[1] == _CHANNELS
    told = shape[2:] if first else shape[1:3]
    height, width = (side if isinstance(side, int) else size for side in told)
    if not height or not width or (size is not None and {height, width} != {size}):
        msg = f"model {path!r} takes {shape}, size is {size}; give the size that it was made for"
        raise DefinitionError(msg)
    return _Input(inputs[0].name, kind, (width, height), first)


def _output(path: str, session: Any, output: str | None) -> str:
    names = [output.name for output in session.get_outputs()]
    if output in names:
        return str(output)
    if output is None and len(names) == 1:
        return str(names[0])
    msg = f"output is {output!r}; model {path!r} has {', '.join(names)}"
    raise DefinitionError(msg)
