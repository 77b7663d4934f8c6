"""``read_huggingface``: read the rows of Hugging Face datasets as records."""

import os
from collections.abc import Collection
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any

from dagster_dataops.errors import MissingExtraError, StreamArgumentError
from dagster_dataops.readers.huggingface.hub_conventions import HUB_NAME
from dagster_dataops.streams.core.arguments import texts
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

if TYPE_CHECKING:
    import datasets


def read_huggingface(
    dataset: "str | os.PathLike[str] | datasets.Dataset",
    columns: SequenceOf[str] | None = None,
    *,
    missing: Collection[str] = (),
    revision: str | None = None,
    split: str | None = None,
    config: str | None = None,
) -> DataPipelineBuilder:
    """Read the rows of a Hugging Face dataset, of this machine or on the Hub.

    A name such as ``"org/name"`` means a dataset on the Hub, unless a folder of this machine has
    it. The Parquet files are read by ranges, row group by row group, without a copy on the disk.
    Needs the extra ``hub``. ``revision="main"`` is a branch, a tag or a commit. It is looked up
    once. The commit and the digests of the files are the identity of the data: if the branch has
    moved, an earlier state is refused; give its commit to go on. The files of ``split="train"`` are
    those that the dataset card lists, or whose paths have the name of the split. The token is that
    of the environment, ``HF_TOKEN``, and the Hub that of ``HF_ENDPOINT``. Resuming reads no earlier
    row group.

    Datasets of this machine need the extra ``huggingface``. Resuming is immediate, also in shuffled
    or filtered datasets.

    Values are converted to JSON as in `read_parquet`, but texts of the feature ``Json`` are parsed,
    as in ``dataset[0]``. Images, audio, videos and other files of a dataset become a `File`, also
    in lists: a run stores it by its content, and its record holds the reference. Of a value with a
    path alone the record holds the reference to that path. ``export.HuggingFace`` and
    ``export.HuggingFaceHub`` write them with ``features={"image": "image"}``.

    Args:
        dataset: A ``datasets.Dataset``, for example one split from ``load_dataset``; the folder of
            a dataset written by ``save_to_disk``; or the name of one on the Hub.
        columns: The columns to read, in order; all if ``None``.
        missing: See `read_parquet`.
        revision: Branch, tag or commit on the Hub; ``None`` is ``main``.
        split: Split on the Hub; ``None`` is ``train``.
        config: Configuration on the Hub; ``None`` for the default, or the only one.

    Raises:
        MissingExtraError: A package is not installed.
        StreamArgumentError: ``dataset`` is none of these, or ``columns`` is a text.
    """
    chosen = texts("read_huggingface", "columns", columns)
    replaced = tuple(sorted(texts("read_huggingface", "missing", missing) or ()))
    if _is_on_hub(dataset, revision, split, config):
        try:
            from dagster_dataops.readers.huggingface.hub_files import HubRows, HubSplit
        except ImportError:
            raise MissingExtraError("read_huggingface", "hub") from None
        files: Any = HubSplit(str(dataset), revision or "main", split or "train", config)
        return DataPipelineBuilder(HubRows(files, chosen, None, replaced))
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
    return DataPipelineBuilder(HuggingFaceRows(dataset, chosen, replaced))


def _is_on_hub(dataset: object, *options: str | None) -> bool:
    """Return whether a dataset is on the Hub."""
    named = isinstance(dataset, str) and HUB_NAME.fullmatch(dataset) is not None
    if named and not os.path.exists(str(dataset)):  # noqa: PTH110 - a name, perhaps of a path
        return True
    if any(option is not None for option in options):
        reason = (
            f"dataset is {dataset!r}, and revision, split and config are for datasets on the Hub; "
            "their names are as in 'org/name', and no folder here has the name"
        )
        raise StreamArgumentError("read_huggingface", reason)
    return False
