"""``get_savable_loader``: a loader of a training dataset, in Energon's names."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from dagster_dataops.errors import StreamArgumentError, StreamStateError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.training_datasets import TrainingDataset, check_worker_config
from dagster_dataops.streams.core.item_failures import FAILURE_TOLERANCE, OnError
from dagster_dataops.training.cooking.restoring import restore_record
from dagster_dataops.training.filestores.cache_pool import CachePool
from dagster_dataops.training.loading.distributed import DistributedReadingService
from dagster_dataops.training.loading.iteration import DataLoader2Iterator
from dagster_dataops.training.loading.loader import DataLoader2
from dagster_dataops.training.loading.multi_processing import MultiProcessingReadingService
from dagster_dataops.training.loading.rank_states import merged_states
from dagster_dataops.training.loading.reading_service import ReadingServiceInterface
from dagster_dataops.training.loading.sequential import SequentialReadingService
from dagster_dataops.training.loading.worker_config import WorkerConfig, log_without_effect

_NAME: Final = "get_savable_loader"
_WITHOUT_EFFECT: Final = frozenset(
    {
        *("checkpoint_every_sec", "checkpoint_every_min_n_samples", "n_checkpoints"),
        *("gc_collect_every_n_steps", "prefetch_factor", "fail_on_timeout"),
        *("watchdog_timeout_seconds", "watchdog_initial_timeout_seconds"),
    }
)
_SAVE_GLOBAL: Final = "save_state_global"
_RESTORE_GLOBAL: Final = "restore_state_global"
_STATES: Final = "states"  # in a state of all ranks: their states in order
_VIRTUAL: Final = "virtual_epoch"  # in a state: the items of the present virtual epoch


class SavableLoader(DataLoader2):
    """`DataLoader2` with Energon's names for its position.

    A loop goes on where the last one was left, as in Energon; at the end of an epoch the next one
    begins.

    Attributes:
        dataset: The dataset of `get_savable_loader`; ``None`` for a loader made otherwise.
        num_workers: The number of worker processes that `get_savable_loader` was given.
    """

    dataset: TrainingDataset | None = None
    num_workers: int = 0
    _running: DataLoader2Iterator | None = None  # that with which further loops go on
    _in_epoch = 0  # the items of the present virtual epoch

    @override
    def __iter__(self) -> Any:
        """Return an iterator over the rest of the epoch, or of the virtual epoch."""
        length = 0 if self.dataset is None else self.dataset.virtual_epoch_length
        if length:
            self._in_epoch %= length
            return self._virtual_epoch(length)
        return self._iterator()

    def _iterator(self) -> DataLoader2Iterator:
        """Return the iterator of the present epoch, or of the next one if that has ended."""
        if self._running is None or self._running.has_ended:
            self._running = super().__iter__()
        return self._running

    @override
    def seed(self, seed: int) -> None:
        super().seed(seed)
        self._running, self._in_epoch = None, 0

    def _virtual_epoch(self, length: int) -> Iterator[Any]:
        for item in islice(self._iterator(), length - self._in_epoch):
            self._in_epoch += 1
            yield item
        if self._in_epoch < length:  # the dataset has ended
            self._in_epoch = 0

    def __len__(self) -> int:
        """Return the number of items of an epoch for this rank, as `len` of the dataset."""
        return len(self._dataset("len()"))

    def config(self) -> dict[str, Any]:
        """Return what defines the items, as JSON: the options of the loader, and the dataset.

        So a training program can store it beside a state, and compare it when it loads the state.

        Raises:
            StreamArgumentError: The loader has no dataset.
        """
        return {
            "type": type(self).__name__,
            "num_workers": self.num_workers,
            "seed": self._seed,
            "dataset": self._dataset("config").config(),
        }

    @override
    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        length = 0 if self.dataset is None else self.dataset.virtual_epoch_length
        return {**state, _VIRTUAL: self._in_epoch % length} if length else state

    @override
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        count = state_dict.get(_VIRTUAL, 0)
        if type(count) is not int or count < 0:
            msg = f"the loader's state is damaged: {_VIRTUAL} is {count!r}"
            raise StreamStateError(msg)
        self._running, self._in_epoch = None, count

    def save_state_rank(self) -> dict[str, Any]:
        """Return the position after the last item; see `DataLoader2.state_dict`."""
        return self.state_dict()

    def restore_state_rank(self, state: Mapping[str, Any] | None) -> None:
        """Go to a position; see `DataLoader2.load_state_dict`. ``None`` changes nothing."""
        if state is not None:
            self.load_state_dict(state)

    def save_state_global(self, global_dst_rank: int = 0) -> dict[str, Any] | None:
        """Return the positions of all ranks, which must call it at the same time.

        Args:
            global_dst_rank: The rank that gets them; the others get ``None``.

        Raises:
            StreamArgumentError: There are other ranks, but no group of ``torch.distributed``.
        """
        states = self._config(_SAVE_GLOBAL).gathered(global_dst_rank, self.state_dict())
        return None if states is None else {_STATES: states}

    def restore_state_global(
        self, state: Mapping[str, Any] | None, src_rank: int | None = None
    ) -> None:
        """Go to the position of this rank; if the number of ranks is another one, to that of all.

        Args:
            state: From `save_state_global`; with ``src_rank``, only that rank needs it.
            src_rank: The rank that sends it to the others by ``torch.distributed``; ``None`` if
                each rank has it.

        Raises:
            StreamArgumentError: It is no state of `save_state_global`.
            StreamStateError: The number of ranks is another one, and their positions differ.
        """
        config = self._config(_RESTORE_GLOBAL)
        if src_rank is not None:
            state = config.sent_from(src_rank, state)
        states = None if state is None else state.get(_STATES)
        if not isinstance(states, list) or not states:
            reason = "it needs a state of save_state_global(), on each rank unless src_rank is set"
            raise StreamArgumentError(_RESTORE_GLOBAL, reason)
        same = len(states) == config.world_size
        self.load_state_dict(states[config.rank] if same else merged_states(states))

    def _config(self, use: str) -> WorkerConfig:
        return check_worker_config(use, None, self._dataset(use))

    def restore_sample(self, restore_key: Sequence[Any]) -> Any:
        """Return a sample, a pack or a batch again; the position is not changed.

        Args:
            restore_key: See `restore_record`.

        Raises:
            StreamArgumentError: The loader has no dataset.
            UnknownSampleError: The dataset has no such sample.
        """
        return restore_record(self._dataset("restore_sample"), restore_key)

    def _dataset(self, use: str) -> TrainingDataset:
        if self.dataset is None:
            reason = "it needs a loader of get_savable_loader(); use restore_record(dataset, key)"
            raise StreamArgumentError(use, reason)
        return self.dataset


def get_savable_loader(
    dataset: object,
    *,
    num_workers: int | None = None,
    worker_config: WorkerConfig | None = None,
    cache_pool: CachePool | None = None,
    on_error: OnError | None = None,
    quarantine: str | os.PathLike[str] | None = None,
    failure_tolerance: int | None = FAILURE_TOLERANCE,
    seed: int | None = None,
    **without_effect: Any,
) -> SavableLoader:
    """Return a loader of a dataset, whose position can be saved and loaded; see `DataLoader2`.

    Args:
        dataset: Of `get_train_dataset` or `get_val_dataset`.
        num_workers: The number of worker processes; 0 reads in this process. Items and positions
            are the same for every number. By default that of the ``worker_config`` of the dataset.
        worker_config: Energon's; it must be that of the dataset.
        cache_pool: The cache pool for cookers that need one.
        on_error: The handling of failed samples, as for `DataPipeline`: by default that of the
            ``worker_config``, so that they are logged and skipped, as in Energon. With
            ``quarantine``, ``loader.quarantined`` has them.
        quarantine: A jsonl file for failed samples, with ``on_error="quarantine"``.
        failure_tolerance: The number of samples in a row on which a step may fail, as in Energon;
            ``None`` for no limit.
        seed: The seed of all stages without one; by default the ``seed_offset`` of the
            ``worker_config``.
        **without_effect: Options of Energon that have no effect, as a warning in the log says:
            ``checkpoint_every_sec``, ``checkpoint_every_min_n_samples``, ``n_checkpoints`` (each
            state is that of the last item), ``prefetch_factor``, ``gc_collect_every_n_steps``,
            ``watchdog_timeout_seconds``, ``watchdog_initial_timeout_seconds`` and
            ``fail_on_timeout``.

    Raises:
        StreamArgumentError: ``dataset`` is no such dataset, or has another ``worker_config``.
        StreamDefinitionError: ``num_workers`` is invalid.
        TypeError: An option is unknown.
    """
    unknown = sorted(without_effect.keys() - _WITHOUT_EFFECT)
    if unknown:
        msg = f"{_NAME}() has no option {unknown[0]!r}"
        raise TypeError(msg)
    log_without_effect(_NAME, without_effect)
    if not isinstance(dataset, TrainingDataset):
        reason = f"it must be a dataset of get_train_dataset(), not a {type(dataset).__name__}"
        raise StreamArgumentError(_NAME, reason)
    config = check_worker_config(_NAME, worker_config, dataset)
    count = config.num_workers if num_workers is None else num_workers
    loader = SavableLoader(
        dataset.stream(cache_pool, marked=True).and_return(
            on_error=on_error or config.on_error,
            quarantine=quarantine,
            seed=config.seed_offset if seed is None else seed,
            failure_tolerance=failure_tolerance,
        ),
        reading_service=_service(config, count),
    )
    loader.dataset, loader.num_workers = dataset, count
    return loader


get_loader = get_savable_loader


def _service(config: WorkerConfig, num_workers: int) -> ReadingServiceInterface:
    workers = MultiProcessingReadingService(num_workers)
    if config.world_size == 1:
        return workers
    ranks = DistributedReadingService(config.rank, config.world_size)
    return SequentialReadingService(ranks, workers)
