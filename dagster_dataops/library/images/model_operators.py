"""Operators that apply a model of the user to images: labels, vectors, scores, text in pictures."""

import math
from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.filters.rules import bounds
from dagster_dataops.library.images.image_files import ImageFile, images
from dagster_dataops.library.images.image_filters import ImageFilter
from dagster_dataops.library.images.image_models import (
    Deviations,
    Fit,
    ImageModel,
    Means,
    Model,
    Normalization,
    Preparation,
)
from dagster_dataops.library.images.image_operator import ImageOperator
from dagster_dataops.library.images.image_transforms import Resampling
from dagster_dataops.operators.options.ranges import Fraction, PositiveInt
from dagster_dataops.records import Record

_BOX: Final = 4
_MAP: Final = 2


class ImageModelOperator(ImageOperator):
    """An operator that applies a model of the user to images. A subclass defines `write`.

    Args:
        model: Function from a list of images of Pillow, in mode RGB and upright, to as many
            results; or the path of an ONNX file with one input of images, 3 channels first or last.
        input_key: Key of the file: a column, or a selector of one element.
        size: Width and height that an ONNX model takes; ``None`` reads it in the file.
        fit: How images are made that large: ``cover`` cuts off, ``inside`` adds black, ``stretch``
            changes the shape.
        resample: The filter of Pillow.
        mean: Means of red, green and blue, 0 to 1, which are subtracted for an ONNX model.
        std: Standard deviations, by which the differences are divided.
        output: Name of the output of an ONNX model; ``None`` for the only one.
        **kwargs: See `ImageOperator`.
    """

    def __init__(
        self,
        model: Model,
        input_key: str = "file",
        *,
        size: PositiveInt | None = None,
        fit: Fit = "cover",
        resample: Resampling = "bicubic",
        mean: Means = (0.0, 0.0, 0.0),
        std: Deviations = (1.0, 1.0, 1.0),
        output: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key=input_key, **kwargs)
        preparation = Preparation(
            size=size, fit=fit, resample=resample, mean=tuple(mean), std=tuple(std)
        )
        self._model = ImageModel(f"images.{type(self).__name__}", model, preparation, output)

    def forward_batch(self, records: list[Record]) -> list[Any]:
        results = self._model([self._images.of(record).rgb for record in records])
        for record, result in zip(records, results, strict=True):
            self.write(record, result)
        return list(records)

    def write(self, record: Record, result: Any) -> None:
        """Write the result of the model for the image of a record."""
        raise NotImplementedError


class Classify(ImageModelOperator, images):
    """Write the label of an image by a model of yours, and its score.

    Reads the file in ``input_key="file"`` and writes ``output_key="label"`` and
    ``score_key="label_score"``: the label with the largest number of the model's row, and that
    number. ``normalization`` turns rows of logits into probabilities. The images of
    ``_batch_size`` records go to a function at once, and to an ONNX model one by one. No model is
    shipped or downloaded. Needs the extra ``images``, and the extra ``onnx`` for ONNX files.

    Source: the image filters by models of Data-Juicer, which download theirs.

    Args:
        labels: Names of the classes, in the order of the model's numbers.
        output_key: Column of the label.
        score_key: Column of its score; ``None`` writes none.
        normalization: ``softmax`` or ``sigmoid`` of the row; ``None`` takes it as it is.
    """

    def __init__(
        self,
        model: Model,
        labels: Sequence[str],
        *,
        output_key: str = "label",
        score_key: str | None = "label_score",
        normalization: Normalization | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, **kwargs)
        self._labels, self._normalization = list(labels), normalization
        self._written, self._score = output_key, score_key

    @override
    def write(self, record: Record, result: Any) -> None:
        row = _row(result, self._normalization)
        if len(row) != len(self._labels):
            msg = f"the model returned {counted(len(row), 'numbers')}, and there are"
            raise ValueError(f"{msg} {counted(len(self._labels), 'labels')}")
        best = row.index(max(row))
        record[self._written] = self._labels[best]
        if self._score is not None:
            record[self._score] = row[best]


class Score(ImageModelOperator, images):
    """Write the score of an image by a model of yours, such as one of aesthetics or nudity.

    Reads the file in ``input_key="file"`` and writes ``output_key="score"``, a number.
    ``filters.Field`` then decides. If the model returns several numbers, ``label`` is the position
    of the one that counts; by default the last one. The images of ``_batch_size`` records go to a
    function at once, and to an ONNX model one by one. No model is shipped or downloaded. Needs
    the extra ``images``, and the extra ``onnx`` for ONNX files.

    Source: ``image_aesthetics_filter``, ``image_nsfw_filter`` and ``image_watermark_filter`` of
    Data-Juicer, which download theirs.

    Args:
        output_key: Column of the score.
        label: Position of the number that counts, as a text; ``None`` for the last one.
        normalization: ``softmax`` or ``sigmoid`` of the numbers; ``None`` takes them as they are.
    """

    def __init__(
        self,
        model: Model,
        *,
        output_key: str = "score",
        label: str | None = None,
        normalization: Normalization | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, **kwargs)
        if label is not None and not label.isdecimal():
            msg = f"label is {label!r}; give the position of a number of the model, such as '1'"
            raise DefinitionError(msg)
        self._position = -1 if label is None else int(label)
        self._written, self._normalization = output_key, normalization

    @override
    def write(self, record: Record, result: Any) -> None:
        row = _row(result, self._normalization)
        if not -1 <= self._position < len(row):
            msg = f"the model returned {counted(len(row), 'numbers')}; label is {self._position}"
            raise ValueError(msg)
        record[self._written] = row[self._position]


class Embed(ImageModelOperator, images):
    """Write the vector of an image by a model of yours.

    Reads the file in ``input_key="file"`` and writes ``output_key="embedding"``, a list of numbers,
    which ``sample.Diversity`` and ``llm.SemanticDedup`` read as ``vector_key``. The images of
    ``_batch_size`` records go to a function at once, and to an ONNX model one by one. No model is
    shipped or downloaded. Needs the extra ``images``, and the extra ``onnx`` for ONNX files.

    Source: Radford et al. 2021, arXiv:2103.00020, for the use of such vectors.

    Args:
        output_key: Column of the vector.
        normalize: Whether the vector is made to have the length 1.
    """

    def __init__(
        self,
        model: Model,
        *,
        output_key: str = "embedding",
        normalize: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, **kwargs)
        self._written, self._normalize = output_key, normalize

    @override
    def write(self, record: Record, result: Any) -> None:
        row = _row(result, None)
        length = math.hypot(*row) if self._normalize else 1.0
        if not length:
            msg = "the model returned a vector of length 0, which cannot have length 1"
            raise ValueError(msg)
        record[self._written] = [number / length for number in row]


class TextArea(ImageFilter, images):
    """Drop images of which text covers more than ``max_ratio``, as a model of yours finds it.

    Reads the file in ``input_key="file"``. ``model`` is a function from a list of one image of
    Pillow to a list of what it finds: boxes ``[left, top, right, bottom]`` in pixels, which count
    once where they overlap; or a map of probabilities, an array of two dimensions with numbers from
    0 to 1 over the whole image, whose cells of at least ``threshold`` count. Or it is the path of
    an ONNX file that makes such a map. No model is shipped or downloaded. ``None`` is no limit.
    Signal ``image_text_area``; reasons ``low_image_text_area``, ``high_image_text_area``. Needs the
    extra ``images``, and the extra ``onnx`` for ONNX files.

    Source: ``video_ocr_area_ratio_filter`` of Data-Juicer, which adds up boxes that overlap.

    Args:
        model: Function from a list of images to boxes or maps, or the path of an ONNX file.
        min_ratio: Smallest share of the area to keep; ``None`` for no limit.
        max_ratio: Largest share of the area to keep; ``None`` for no limit.
        threshold: Probability from which a cell of a map is text.
        size: Width and height that an ONNX model takes; ``None`` reads it in the file.
        resample: The filter of Pillow.
        mean: Means of red, green and blue, 0 to 1, which are subtracted for an ONNX model.
        std: Standard deviations, by which the differences are divided.
        output: Name of the output of an ONNX model; ``None`` for the only one.
    """

    def __init__(
        self,
        model: Model,
        *,
        min_ratio: Fraction | None = None,
        max_ratio: Fraction | None = 0.2,
        threshold: Fraction = 0.5,
        size: PositiveInt | None = None,
        resample: Resampling = "bicubic",
        mean: Means = (0.0, 0.0, 0.0),
        std: Deviations = (1.0, 1.0, 1.0),
        output: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        preparation = Preparation(
            size=size, fit="stretch", resample=resample, mean=tuple(mean), std=tuple(std)
        )
        self._model = ImageModel("images.TextArea", model, preparation, output)
        self._threshold = threshold
        self.rules = bounds("image_text_area", self._share, min_ratio, max_ratio)

    def _share(self, image: ImageFile) -> float:
        import numpy as np

        mask = self._model([image.rgb])[0]
        cells = np.squeeze(mask, _single(mask.shape)) if hasattr(mask, "shape") else None
        if cells is not None and cells.ndim == _MAP and _are_shares(cells):
            return float((cells >= self._threshold).mean())
        return _covered(mask, image.size)


def _single(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dimensions of size 1 that an array has in addition to those of a map."""
    single = [place for place, side in enumerate(shape) if side == 1]
    return tuple(single[: max(0, len(shape) - _MAP)])


def _are_shares(cells: Any) -> bool:
    return bool(cells.dtype.kind == "f" and cells.size and cells.min() >= 0 and cells.max() <= 1)


def _covered(boxes: Any, size: tuple[int, int]) -> float:
    """Return the share of an image that boxes cover."""
    import numpy as np

    width, height = size
    covered = np.zeros((height, width), bool)
    for box in boxes:
        if len(box) != _BOX:
            msg = f"the model returned {box!r:.60}, which is no box of left, top, right and bottom"
            raise ValueError(msg)
        left, top, right, bottom = (max(0, round(float(side))) for side in box)
        covered[top:bottom, left:right] = True
    return float(covered.mean())


def _row(result: Any, normalization: str | None) -> list[float]:
    """Return the numbers of a result, a number or a row."""
    import numpy as np

    row = np.asarray(result, np.float64)
    flat = row.reshape(-1)
    if flat.size != max(row.shape, default=1) or not np.isfinite(flat).all():
        msg = (
            f"the model returned an array of shape {row.shape}; it must be finite numbers in a row"
        )
        raise ValueError(msg)
    if normalization == "softmax":
        flat = np.exp(flat - flat.max())
        flat = flat / flat.sum()
    elif normalization == "sigmoid":
        flat = 1 / (1 + np.exp(-flat))
    return [float(number) for number in flat]
