"""``get_train_dataset``, ``get_val_dataset`` and `MapDataset`, in Energon's names."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.task_encoder import DefaultTaskEncoder, in_shuffled_windows
from dagster_dataops.streams.core.arguments import check_count
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.training.cooking.blending import epoch_size, with_shuffled_runs
from dagster_dataops.training.cooking.crude_streams import CrudeStream, crude
from dagster_dataops.training.cooking.metadataset.metadataset_plan import YAML_SUFFIXES
from dagster_dataops.training.cooking.metadataset.metadataset_streams import metadataset
from dagster_dataops.training.filestores.cache_pool import CachePool, NoCachePool
from dagster_dataops.training.loading.stage_config import stage_config
from dagster_dataops.training.loading.worker_config import WorkerConfig, log_without_effect

_TRAIN: Final = "train"
_PARALLEL: Final = 16  # runs that are read at once, as in Energon
_ALONE: Final = WorkerConfig(rank=0, world_size=1, num_workers=0)


class TrainingDataset:
    """The steps of a task encoder over a dataset or metadataset; made by `get_train_dataset`.

    The stream ends after ``limit`` items, if there is one. The options are those of
    `DefaultTaskEncoder.stream`.

    Attributes:
        worker_config: The rank and the worker processes; ``None`` if they were not given.
        virtual_epoch_length: The number of items after which a loop over a loader ends; 0 for none.
    """

    def __init__(
        self,
        samples: CrudeStream,
        encoder: DefaultTaskEncoder[Any, Any, Any, Any],
        *,
        limit: int | None = None,
        worker_config: WorkerConfig | None = None,
        virtual_epoch_length: int = 0,
        **options: Any,
    ) -> None:
        self._samples, self._encoder, self._options = samples, encoder, options
        self._limit, self.worker_config = limit, worker_config
        self.virtual_epoch_length = virtual_epoch_length
        self.stream()  # checks the cookers and the sizes

    @property
    def stage(self) -> Stage:
        """The last stage of the stream, for `restore_record`."""
        return self.stream().stage

    @property
    def item_stage(self) -> Stage:
        """The last stage before the batches, for `restore_record` with the key of one item."""
        return self._items(NoCachePool(), batch_size=None, batches=False).stage

    @property
    def makes_batches(self) -> bool:
        """Whether items are batches."""
        return self._options.get("batch_size") is not None or self._encoder.makes_groups

    def stream(
        self, cache_pool: CachePool | None = None, *, marked: bool = False
    ) -> DataPipelineBuilder:
        """Return the stream of the training items.

        Without a cache pool for the cookers that need one, files are read when they are needed.

        Args:
            cache_pool: The cache pool.
            marked: Whether the stream has a ``sharding_filter()`` before the cooker, so that
                workers cook. With several ranks, it always has.
        """
        items = self._items(NoCachePool() if cache_pool is None else cache_pool, marked=marked)
        return items if self._limit is None else items.take(self._limit)

    def _items(self, pool: CachePool, *, marked: bool = False, **other: Any) -> DataPipelineBuilder:
        options = {**self._options, **other}
        samples = in_shuffled_windows(self._samples, options.pop("shuffle_buffer_size", None))
        if marked or (self.worker_config or _ALONE).world_size > 1:
            samples = samples.sharding_filter()  # the order before it is that of all ranks
        return self._encoder.stream(samples, cache_pool=pool, **options)

    def config(self) -> dict[str, Any]:
        """Return what defines the dataset, as JSON: its stages, with their options, and its ranks.

        Functions are named, secrets are hidden. No data is read.
        """
        config = {
            "type": type(self).__name__,
            "worker_config": (self.worker_config or _ALONE).config(),
            "virtual_epoch_length": self.virtual_epoch_length,
        }
        return {**config, "stream": stage_config(self.stage)}

    def __iter__(self) -> Iterator[Any]:
        """Yield the training items from the start."""
        return iter(self.stream())

    def __len__(self) -> int:
        """Return the number of items of one epoch for this rank; indices of datasets are made.

        Samples that fail or that a step leaves out are counted, as in Energon. A dataset that
        starts again has the length of one epoch of it, a blend that of all its datasets.

        Raises:
            TypeError: The items are packs, or batches of groups: their number is not known.
        """
        if self.virtual_epoch_length:
            return self.virtual_epoch_length
        config, size = self.worker_config or _ALONE, self._options.get("batch_size")
        if self._options.get("packing_buffer_size") is not None or self._encoder.makes_groups:
            msg = "the number of packs, or of batches of groups, is known when they are made"
            raise TypeError(msg)
        count = epoch_size(self._samples.stage)
        count = count // config.world_size + (config.rank < count % config.world_size)
        if size is not None:
            count = count // size if self._options.get("batch_drop_last") else -(-count // size)
        return count if self._limit is None else min(count, self._limit)


def check_worker_config(
    place: str, wanted: WorkerConfig | None, dataset: TrainingDataset
) -> WorkerConfig:
    """Return the configuration of a dataset, which another one that is given must not contradict.

    Raises:
        StreamArgumentError: They differ.
    """
    config = dataset.worker_config or _ALONE
    if wanted is not None and not wanted.is_same(config):
        reason = "worker_config differs from that of the dataset; give it to the dataset alone"
        raise StreamArgumentError(place, reason)
    return config


class MapDataset(TrainingDataset):
    """A dataset whose items a function has changed.

    Args:
        dataset: The dataset.
        map_fn: Called with each item. It may raise `SkipSample`.
        worker_config: Energon's; it must be that of the dataset.

    Raises:
        StreamArgumentError: ``worker_config`` differs from that of the dataset.
        StreamDefinitionError: ``map_fn`` cannot be called.

    Example:
        >>> texts = MapDataset(get_val_dataset("captions"), lambda sample: sample.caption)
    """

    def __init__(
        self,
        dataset: TrainingDataset,
        map_fn: Callable[[Any], Any],
        *,
        worker_config: WorkerConfig | None = None,
    ) -> None:
        check_worker_config("MapDataset", worker_config, dataset)
        self._dataset, self._function = dataset, map_fn
        self.worker_config = dataset.worker_config
        self.virtual_epoch_length = dataset.virtual_epoch_length
        self.stream()  # checks the function

    @property
    @override
    def item_stage(self) -> Stage:
        items = self._dataset.item_stage
        if self._dataset.makes_batches:
            return items
        return DataPipelineBuilder(items).map(self._function).stage

    @property
    @override
    def makes_batches(self) -> bool:
        return self._dataset.makes_batches

    @override
    def stream(
        self, cache_pool: CachePool | None = None, *, marked: bool = False
    ) -> DataPipelineBuilder:
        return self._dataset.stream(cache_pool, marked=marked).map(self._function)

    @override
    def __len__(self) -> int:
        return len(self._dataset)


def get_train_dataset(
    path: str | os.PathLike[str] | Mapping[str, Any],
    *,
    split_part: str = _TRAIN,
    worker_config: WorkerConfig | None = None,
    task_encoder: DefaultTaskEncoder[Any, Any, Any, Any] | None = None,
    batch_size: int | None = None,
    batch_drop_last: bool = False,
    packing_buffer_size: int | None = None,
    shuffle_buffer_size: int | None = None,
    max_samples_per_sequence: int | None = 0,
    parallel_shard_iters: int | None = None,
    virtual_epoch_length: int = 0,
    shuffle_over_epochs_multiplier: int | None = 1,
    repeat: bool = True,
    seed: int | None = None,
    dataset_config: str = "dataset.yaml",
    split_config: str | None = None,
) -> TrainingDataset:
    """Return a dataset for training, whose datasets start again when they end.

    Args:
        path: A dataset, or the YAML file or the dict of a metadataset.
        split_part: The split.
        worker_config: The rank and the worker processes of the loader; ``None`` for one process.
        task_encoder: The task encoder.
        batch_size: The number of items of a batch; ``None`` for no batches.
        batch_drop_last: Whether to drop the last batch if it is not full.
        packing_buffer_size: The number of samples of each packed window; ``None`` for no packs.
        shuffle_buffer_size: The number of samples of each shuffled window; ``None`` for none.
            Crude samples are shuffled, in the order that all ranks share.
        max_samples_per_sequence: The samples are read in runs of at most this number, whose order
            is another in each epoch; ``None`` for runs of whole shards. 0 reads in order.
        parallel_shard_iters: The number of runs that are read at once; ``None`` for 16.
        virtual_epoch_length: The number of items of this rank after which a loop over the loader
            ends; the next loop goes on from there. 0 for no end.
        shuffle_over_epochs_multiplier: ``None`` reads in order, whatever
            ``max_samples_per_sequence`` is. Every other value means 1, as a warning in the log
            says: each epoch has all samples.
        repeat: Whether the datasets start again. A blend by weight always does.
        seed: The seed of the draws of a blend.
        dataset_config: See `crude`; for a dataset.
        split_config: See `crude`; for a dataset.

    Raises:
        MetadatasetError: The file is not a valid metadataset.
        CookerError: No cooker fits a dataset, or its parameters do not.
        StreamDefinitionError: An argument is invalid.
    """
    check_count("get_train_dataset", "virtual_epoch_length", virtual_epoch_length, 0)
    if shuffle_over_epochs_multiplier not in {None, 1}:
        log_without_effect("get_train_dataset", ["shuffle_over_epochs_multiplier"])
    configs = {"dataset_config": dataset_config, "split_config": split_config}
    samples = _samples(path, split_part, seed, configs, training=True)
    if max_samples_per_sequence != 0 and shuffle_over_epochs_multiplier is not None:
        parallel = _PARALLEL if parallel_shard_iters is None else parallel_shard_iters
        samples = _shuffled(samples, max_samples_per_sequence, parallel)
    if repeat and not samples.is_infinite():
        samples = samples.repeat()
    elif not repeat and samples.is_infinite():
        reason = "repeat=False, but a blend by weight never ends; write blend_epochized"
        raise StreamDefinitionError(samples.endless_stage or "blend", reason)
    return TrainingDataset(
        samples,
        task_encoder or DefaultTaskEncoder(),
        worker_config=worker_config,
        virtual_epoch_length=virtual_epoch_length,
        batch_size=batch_size,
        batch_drop_last=batch_drop_last,
        packing_buffer_size=packing_buffer_size,
        shuffle_buffer_size=shuffle_buffer_size,
    )


def _shuffled(samples: CrudeStream, longest: int | None, parallel: int) -> CrudeStream:
    if longest is not None:
        check_count("get_train_dataset", "max_samples_per_sequence", longest, 1)
    check_count("get_train_dataset", "parallel_shard_iters", parallel, 1)
    return samples.with_stage(with_shuffled_runs(samples.stage, longest, parallel))


def get_val_dataset(
    path: str | os.PathLike[str] | Mapping[str, Any],
    *,
    split_part: str = "val",
    worker_config: WorkerConfig | None = None,
    task_encoder: DefaultTaskEncoder[Any, Any, Any, Any] | None = None,
    batch_size: int | None = None,
    batch_drop_last: bool = False,
    packing_buffer_size: int | None = None,
    limit: int | None = None,
    dataset_config: str = "dataset.yaml",
    split_config: str | None = None,
) -> TrainingDataset:
    """Return a dataset for evaluation: every dataset once, in order.

    Args:
        path: See `get_train_dataset`.
        split_part: The split.
        worker_config: See `get_train_dataset`.
        task_encoder: See `get_train_dataset`.
        batch_size: See `get_train_dataset`.
        batch_drop_last: See `get_train_dataset`.
        packing_buffer_size: See `get_train_dataset`.
        limit: The number of items after which it ends, as in Energon: of batches with
            ``batch_size``, of packs with ``packing_buffer_size``, else of samples; ``None`` for
            all. Each rank has as many.
        dataset_config: See `get_train_dataset`.
        split_config: See `get_train_dataset`.

    Raises:
        MetadatasetError: The file is not a valid metadataset.
        CookerError: No cooker fits a dataset, or its parameters do not.
        StreamDefinitionError: An argument is invalid.
    """
    configs = {"dataset_config": dataset_config, "split_config": split_config}
    samples = _samples(path, split_part, None, configs, training=False)
    encoder = task_encoder or DefaultTaskEncoder()
    of_samples = batch_size is None and packing_buffer_size is None and not encoder.makes_groups
    of_samples = of_samples and (worker_config or _ALONE).world_size == 1
    return TrainingDataset(
        samples.take(limit) if limit is not None and of_samples else samples,
        encoder,
        limit=None if of_samples else limit,
        worker_config=worker_config,
        batch_size=batch_size,
        batch_drop_last=batch_drop_last,
        packing_buffer_size=packing_buffer_size,
    )


def _samples(
    path: Any,
    split: str,
    seed: int | None,
    configs: Mapping[str, Any],
    *,
    training: bool,
) -> CrudeStream:
    if isinstance(path, Mapping) or os.fspath(path).lower().endswith(YAML_SUFFIXES):
        return metadataset(path, split=split, seed=seed, training=training)
    return crude(path, split=split, **configs)
