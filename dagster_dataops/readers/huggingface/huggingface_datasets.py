"""``read_huggingface``: read the rows of Hugging Face datasets as records."""

import os
from collections.abc import Collection
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any

from dagster_dataops.errors import MissingExtraError, StreamArgumentError
from dagster_dataops.streams.core.arguments import texts
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

if TYPE_CHECKING:
    import datasets


def read_huggingface(
    dataset: "str | os.PathLike[str] | datasets.Dataset",
    columns: SequenceOf[str] | None = None,
    *,
    missing: Collection[str] = (),
) -> DataPipelineBuilder:
    """Read the rows of a Hugging Face dataset; needs the extra ``huggingface``.

    Values are converted to JSON as in `read_parquet`, but those of the feature ``Json`` become what
    they say, as ``dataset[0]`` has them. Images and audio are not decoded: they come
    as stored, ``{"bytes": …, "path": …}`` with base64. Resuming is immediate, also in shuffled or
    filtered datasets.

    Args:
        dataset: A ``datasets.Dataset``, for example one split from ``load_dataset``; or the
            folder of a dataset written by ``save_to_disk``.
        columns: The columns to read, in order; all if ``None``.
        missing: See `read_parquet`.

    Raises:
        MissingExtraError: datasets or pyarrow is not installed.
        StreamArgumentError: ``dataset`` is neither, or ``columns`` is a text.
    """
    try:
        import datasets

        from dagster_dataops.readers.huggingface.huggingface_rows import HuggingFaceRows
    except ImportError:
        raise MissingExtraError("read_huggingface", "huggingface") from None
    known: Any = (str, os.PathLike, datasets.Dataset, datasets.DatasetDict)
    if not isinstance(dataset, known):
        reason = (
            f"dataset is a {type(dataset).__name__}; it must be a datasets.Dataset (for one "
            "by name: load_dataset(...) without streaming) or the folder of one"
        )
        raise StreamArgumentError("read_huggingface", reason)
    chosen = texts("read_huggingface", "columns", columns)
    replaced = tuple(sorted(texts("read_huggingface", "missing", missing) or ()))
    return DataPipelineBuilder(HuggingFaceRows(dataset, chosen, replaced))
