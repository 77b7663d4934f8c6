"""`ImageModel`: a model of the user that takes images, a function or an ONNX file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

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


class ImageModel:
    """Applies a model to images in mode RGB.

    Args:
        operator: Name of the operator, for errors.
        model: Function from a list of images of Pillow to as many results, or an ``.onnx`` file.
        size: Width and height of what an ONNX model takes; ``None`` reads it in the file.
        fit: ``cover``, ``stretch`` or ``inside``; how images are made that large.
        resample: The filter of Pillow.
        mean: Mean of each channel, 0 to 1, which is subtracted.
        std: Standard deviation of each channel, which divides the result.
        output: Name of the output; ``None`` for the only one.

    Raises:
        DefinitionError: The file is no such model, or the options do not fit it.
        MissingExtraError: The packages of the extra ``onnx`` are not installed.
    """

    def __init__(
        self,
        operator: str,
        model: Model,
        *,
        size: int | None = None,
        fit: str = "cover",
        resample: str = "bicubic",
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        output: str | None = None,
    ) -> None:
        self._operator = operator
        self._function: Callable[[list[Any]], Sequence[Any]] | None = None
        for name, values in (("mean", mean), ("std", std)):
            if len(values) != _CHANNELS:
                msg = f"{name} must have {_CHANNELS} numbers, for red, green and blue; got {values}"
                raise DefinitionError(msg)
        if callable(model):
            self._function = model
        else:
            sizes = size, fit, resample
            self._file = LoadedFile(
                _onnx_model, str(model), operator, sizes, tuple(mean), tuple(std), output
            )

    def __call__(self, pictures: list[Any]) -> list[Any]:
        """Return the results for images in mode RGB, in order.

        An ONNX model gets one image at a time, so that a result does not depend on the others.

        Raises:
            ValueError: A function returns another number of results.
        """
        if self._function is None:
            return [self._file.value(picture) for picture in pictures]
        found = list(self._function(pictures))
        if len(found) != len(pictures):
            msg = f"the model returned {counted(len(found), 'results')} for"
            msg = f"{msg} {counted(len(pictures), 'images')}"
            raise ValueError(msg)
        return found


def _onnx_model(
    path: str,
    operator: str,
    sizes: tuple[int | None, str, str],
    mean: tuple[float, ...],
    std: tuple[float, ...],
    output: str | None,
) -> Callable[[Any], Any]:
    """Return the function from an image to the output of the model in a file."""
    with needs_extra(f"{operator} with an ONNX file", "onnx"):
        import numpy as np
        import onnxruntime
    if not Path(path).is_file():
        msg = f"model {path!r} is no file; give an ONNX file, or a function"
        raise DefinitionError(msg)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # workers use the cores
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    try:
        session = onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception as error:  # noqa: BLE001 - its errors have no common class
        msg = f"model {path!r} cannot be read as ONNX: {error!s:.300}"
        raise DefinitionError(msg) from None
    (name, kind, width, height, first), wanted = (
        _input(path, session, sizes[0]),
        _output(path, session, output),
    )

    def result(picture: Any) -> Any:
        pixels = np.asarray(_fitted(picture, (width, height), *sizes[1:]))
        if kind != "uint8":
            scaled = pixels.astype(np.float32) / np.float32(255)
            pixels = ((scaled - np.float32(mean)) / np.float32(std)).astype(kind)
        batch = np.ascontiguousarray(pixels.transpose(2, 0, 1) if first else pixels)[None]
        return session.run([wanted], {name: batch})[0][0]

    return result


def _input(path: str, session: Any, size: int | None) -> tuple[str, str, int, int, bool]:
    """Return name, type, width and height of the input, and whether channels come first."""
    inputs = session.get_inputs()
    shape = inputs[0].shape
    fits = len(inputs) == 1 and len(shape) == _DIMENSIONS and inputs[0].type in _TYPES
    first = fits and shape[1] == _CHANNELS
    if not fits or not (first or shape[3] == _CHANNELS):
        named = ", ".join(f"{one.name}: {one.type} {one.shape}" for one in inputs)
        msg = f"model {path!r} takes {named}; it must take one batch of images with 3 channels"
        raise DefinitionError(msg)
    sides = [
        side if isinstance(side, int) else size for side in (shape[2:] if first else shape[1:3])
    ]
    if None in sides or (size is not None and set(sides) != {size}):
        msg = f"model {path!r} takes {shape}, size is {size}; give the size that it was made for"
        raise DefinitionError(msg)
    height, width = sides
    return inputs[0].name, _TYPES[inputs[0].type], width, height, first


def _output(path: str, session: Any, output: str | None) -> str:
    names = [one.name for one in session.get_outputs()]
    if output in names:
        return str(output)
    if output is None and len(names) == 1:
        return str(names[0])
    msg = f"output is {output!r}; model {path!r} has {', '.join(names)}"
    raise DefinitionError(msg)


def _fitted(picture: Any, size: tuple[int, int], fit: str, resample: str) -> Any:
    from PIL import Image, ImageOps

    method = Image.Resampling[resample.upper()]
    if fit == "stretch":
        return picture.resize(size, method)
    return {"cover": ImageOps.fit, "inside": ImageOps.pad}[fit](picture, size, method)
