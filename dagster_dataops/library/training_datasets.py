"""``get_train_dataset``, ``get_val_dataset`` and ``get_savable_loader``, in Energon's names."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.library.task_encoder import DefaultTaskEncoder
from dagster_dataops.streams.core.item_failures import FAILURE_TOLERANCE, OnError
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.training.cooking.crude_streams import CrudeStream, crude
from dagster_dataops.training.cooking.metadataset.metadataset_plan import YAML_SUFFIXES
from dagster_dataops.training.cooking.metadataset.metadataset_streams import metadataset
from dagster_dataops.training.cooking.restoring import restore_record
from dagster_dataops.training.filestores.cache_pool import CachePool, NoCachePool
from dagster_dataops.training.loading.loader import DataLoader2
from dagster_dataops.training.loading.multi_processing import MultiProcessingReadingService

_TRAIN: Final = "train"


class TrainingDataset:
    """The steps of a task encoder over a dataset or metadataset; made by `get_train_dataset`.

    The stream ends after ``limit`` items, if there is one. The options are those of
    `DefaultTaskEncoder.stream`.
    """

    def __init__(
        self,
        samples: CrudeStream,
        encoder: DefaultTaskEncoder[Any, Any, Any, Any],
        *,
        limit: int | None = None,
        **options: Any,
    ) -> None:
        self._samples, self._encoder, self._options = samples, encoder, options
        self._limit = limit
        self.stream()  # checks the cookers and the sizes

    @property
    def stage(self) -> Stage:
        """The last stage of the stream, for `restore_record`."""
        return self.stream().stage

    @property
    def item_stage(self) -> Stage:
        """The last stage before the batches, for `restore_record` with the key of one item."""
        return self._items(NoCachePool(), batch_size=None).stage

    def stream(self, cache_pool: CachePool | None = None) -> DataPipelineBuilder:
        """Return the stream of the training items.

        Without a cache pool for the cookers that need one, files are read when they are needed.
        """
        items = self._items(NoCachePool() if cache_pool is None else cache_pool)
        return items if self._limit is None else items.take(self._limit)

    def _items(self, pool: CachePool, **other: Any) -> DataPipelineBuilder:
        options = {**self._options, **other}
        return self._encoder.stream(self._samples, cache_pool=pool, **options)

    def __iter__(self) -> Iterator[Any]:
        """Yield the training items from the start."""
        return iter(self.stream())


def get_train_dataset(
    path: str | os.PathLike[str] | Mapping[str, Any],
    *,
    split_part: str = _TRAIN,
    task_encoder: DefaultTaskEncoder[Any, Any, Any, Any] | None = None,
    batch_size: int | None = None,
    batch_drop_last: bool = False,
    packing_buffer_size: int | None = None,
    shuffle_buffer_size: int | None = None,
    repeat: bool = True,
    seed: int | None = None,
) -> TrainingDataset:
    """Return a dataset for training, whose datasets start again when they end.

    Args:
        path: A dataset, or the YAML file or the dict of a metadataset.
        split_part: The split.
        task_encoder: The task encoder.
        batch_size: The number of items of a batch; ``None`` for no batches.
        batch_drop_last: Whether to drop the last batch if it is not full.
        packing_buffer_size: The number of samples of each packed window; ``None`` for no packs.
        shuffle_buffer_size: The number of samples of each shuffled window; ``None`` for none.
        repeat: Whether the datasets start again. A blend by weight always does.
        seed: The seed of the draws of a blend.

    Raises:
        MetadatasetError: The file is not a valid metadataset.
        CookerError: No cooker fits a dataset, or its parameters do not.
        StreamDefinitionError: An argument is invalid.
    """
    samples = _samples(path, split_part, seed, training=True)
    if repeat and not samples.is_infinite():
        samples = samples.repeat()
    elif not repeat and samples.is_infinite():
        reason = "repeat=False, but a blend by weight never ends; write blend_epochized"
        raise StreamDefinitionError(samples.endless_stage or "blend", reason)
    return TrainingDataset(
        samples,
        task_encoder or DefaultTaskEncoder(),
        batch_size=batch_size,
        batch_drop_last=batch_drop_last,
        packing_buffer_size=packing_buffer_size,
        shuffle_buffer_size=shuffle_buffer_size,
    )


def get_val_dataset(
    path: str | os.PathLike[str] | Mapping[str, Any],
    *,
    split_part: str = "val",
    task_encoder: DefaultTaskEncoder[Any, Any, Any, Any] | None = None,
    batch_size: int | None = None,
    batch_drop_last: bool = False,
    packing_buffer_size: int | None = None,
    limit: int | None = None,
) -> TrainingDataset:
    """Return a dataset for evaluation: every dataset once, in order.

    Args:
        path: See `get_train_dataset`.
        split_part: The split.
        task_encoder: See `get_train_dataset`.
        batch_size: See `get_train_dataset`.
        batch_drop_last: See `get_train_dataset`.
        packing_buffer_size: See `get_train_dataset`.
        limit: The number of items after which it ends, as in Energon: of batches with
            ``batch_size``, of packs with ``packing_buffer_size``, else of samples; ``None`` for
            all.

    Raises:
        MetadatasetError: The file is not a valid metadataset.
        CookerError: No cooker fits a dataset, or its parameters do not.
        StreamDefinitionError: An argument is invalid.
    """
    samples = _samples(path, split_part, None, training=False)
    of_samples = batch_size is None and packing_buffer_size is None
    return TrainingDataset(
        samples.take(limit) if limit is not None and of_samples else samples,
        task_encoder or DefaultTaskEncoder(),
        limit=None if of_samples else limit,
        batch_size=batch_size,
        batch_drop_last=batch_drop_last,
        packing_buffer_size=packing_buffer_size,
    )


def _samples(path: Any, split: str, seed: int | None, *, training: bool) -> CrudeStream:
    if isinstance(path, Mapping) or os.fspath(path).lower().endswith(YAML_SUFFIXES):
        return metadataset(path, split=split, seed=seed, training=training)
    return crude(path, split=split)


class SavableLoader(DataLoader2):
    """`DataLoader2` with Energon's names for its position.

    Attributes:
        dataset: The dataset of `get_savable_loader`; ``None`` for a loader made otherwise.
    """

    dataset: TrainingDataset | None = None
    save_state_rank = DataLoader2.state_dict
    restore_state_rank = DataLoader2.load_state_dict

    def restore_sample(self, restore_key: Sequence[Any]) -> Any:
        """Return a sample, a pack or a batch again; the position is not changed.

        Args:
            restore_key: See `restore_record`.

        Raises:
            StreamArgumentError: The loader has no dataset.
            UnknownSampleError: The dataset has no such sample.
        """
        if self.dataset is None:
            reason = "it needs a loader of get_savable_loader(); use restore_record(dataset, key)"
            raise StreamArgumentError("restore_sample", reason)
        return restore_record(self.dataset, restore_key)


def get_savable_loader(
    dataset: object,
    *,
    num_workers: int = 0,
    cache_pool: CachePool | None = None,
    on_error: OnError = "skip",
    quarantine: str | os.PathLike[str] | None = None,
    failure_tolerance: int | None = FAILURE_TOLERANCE,
    seed: int = 0,
) -> SavableLoader:
    """Return a loader of a dataset, whose position can be saved and loaded; see `DataLoader2`.

    Args:
        dataset: Of `get_train_dataset` or `get_val_dataset`.
        num_workers: The number of worker processes; 0 reads in this process. Items and positions
            are the same for every number.
        cache_pool: The cache pool for cookers that need one.
        on_error: The handling of failed samples, as for `DataPipeline`: by default they are
            logged and skipped, as in Energon. With ``quarantine``, ``loader.quarantined`` has them.
        quarantine: A jsonl file for failed samples, with ``on_error="quarantine"``.
        failure_tolerance: The number of samples in a row on which a step may fail, as in Energon;
            ``None`` for no limit.
        seed: The seed of all stages without one.

    Raises:
        StreamArgumentError: ``dataset`` is no such dataset.
        StreamDefinitionError: ``num_workers`` is invalid.
    """
    if not isinstance(dataset, TrainingDataset):
        reason = f"it must be a dataset of get_train_dataset(), not a {type(dataset).__name__}"
        raise StreamArgumentError("get_savable_loader", reason)
    loader = SavableLoader(
        dataset.stream(cache_pool).and_return(
            on_error=on_error,
            quarantine=quarantine,
            seed=seed,
            failure_tolerance=failure_tolerance,
        ),
        reading_service=MultiProcessingReadingService(num_workers),
    )
    loader.dataset = dataset
    return loader
