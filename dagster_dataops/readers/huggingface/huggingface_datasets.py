"""``read_huggingface``: the rows of data sets of Hugging Face as records."""

import os
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any

from dagster_dataops.errors import MissingExtraError, StreamArgumentError
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

if TYPE_CHECKING:
    import datasets


def read_huggingface(
    dataset: "str | os.PathLike[str] | datasets.Dataset", columns: SequenceOf[str] | None = None
) -> DataPipelineBuilder:
    """Read the rows of a data set of Hugging Face; needs the extra ``huggingface``.

    Values become JSON as those of `read_parquet` do; pictures and sounds come as they are stored,
    ``{"bytes": …, "path": …}`` with base64, not decoded. A position is an index and is gone to at
    once, also in data sets that were shuffled or filtered.

    Args:
        dataset: A ``datasets.Dataset``, such as one split of what ``load_dataset`` gives; or the
            folder of one that ``save_to_disk`` wrote.
        columns: Which columns, in their order; all if ``None``.

    Raises:
        MissingExtraError: datasets or pyarrow is not installed.
        StreamArgumentError: It is something else.
    """
    try:
        import datasets

        from dagster_dataops.readers.huggingface.huggingface_rows import HuggingFaceRows
    except ImportError:
        raise MissingExtraError("read_huggingface", "huggingface") from None
    known: Any = (str, os.PathLike, datasets.Dataset, datasets.DatasetDict)
    if not isinstance(dataset, known):
        reason = (
            f"dataset is a {type(dataset).__name__}; it must be a datasets.Dataset (of a data set "
            "by name: load_dataset(...) without streaming) or the folder of one"
        )
        raise StreamArgumentError("read_huggingface", reason)
    if isinstance(columns, str):
        reason = f"columns is {columns!r}; it must be a list of texts"
        raise StreamArgumentError("read_huggingface", reason)
    chosen = None if columns is None else tuple(columns)
    return DataPipelineBuilder(HuggingFaceRows(dataset, chosen))
