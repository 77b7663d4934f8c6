"""Streams and loaders as PyTorch datasets. Imports torch."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import cloudpickle
import torch
from torch.utils.data import IterableDataset, get_worker_info

from dagster_dataops.errors import StreamDefinitionError, StreamStateError
from dagster_dataops.foundation.concurrency.sent_code import pickled
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.ranks import WorldRank, group_rank
from dagster_dataops.streams.core.seeds import derive_seed
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.positioned_stream import PositionedStream

MakeStream = Callable[[int, int], DataPipelineBuilder]

_MAX_WORKERS: Final = 4096  # workers per rank; each takes eight bytes of shared memory


class Loader(Protocol):
    """A loader of a stream, such as `DataLoader2`."""

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over the next epoch, or over the rest of a loaded one."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the position as a JSON object."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position."""
        ...


class StreamDataset(IterableDataset[Any]):
    """A dataset over a stream: every worker of every rank reads its own shard.

    Epochs are counted in memory shared by the loader and its workers, so both new and persistent
    workers know the current epoch.

    Args:
        make_stream: Returns the stream of a shard.
        seed: The seed from which the seed of each epoch is derived.
        shards: The rank; if ``None``, it is determined when reading begins.
        reading: Keyword arguments of ``and_return()``.
    """

    def __init__(
        self,
        make_stream: MakeStream,
        seed: int,
        shards: WorldRank | None,
        reading: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self._make = make_stream
        self._seed = seed
        self._shards = shards or group_rank()
        self._reading = dict(reading)
        self._epochs = torch.zeros(_MAX_WORKERS, dtype=torch.int64).share_memory_()
        self.opened(0, 0, 1)  # raises errors here instead of in a worker

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_make": pickled(self._make)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_make": cloudpickle.loads(state["_make"])})

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass, counted from 0."""
        self._epochs.fill_(epoch)

    @override
    def __iter__(self) -> "StreamIterator":
        """Return an iterator over the next epoch of this worker's shard."""
        shards = self._shards or group_rank() or _rank_of_environment()
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        shard = shards.rank * workers + number
        return StreamIterator(self, number, (shard, shards.world_size * workers))

    def next_epoch(self, worker: int) -> int:
        """Return the epoch that a worker reads next, and advance the counter."""
        epoch = int(self._epochs[worker])
        self.begun(worker, epoch)
        return epoch

    def begun(self, worker: int, epoch: int) -> None:
        """Record that a worker has started ``epoch``."""
        self._epochs[worker] = epoch + 1

    def opened(self, epoch: int, shard_idx: int, num_shards: int) -> PositionedStream:
        """Return the stream of a shard at the start of an epoch.

        Raises:
            StreamDefinitionError: ``make_stream`` did not return a builder.
        """
        opened: object = self._make(shard_idx, num_shards)
        if not isinstance(opened, DataPipelineBuilder):
            reason = (
                f"make_stream returned a {type(opened).__name__}; it must return a builder, "
                "without and_return()"
            )
            raise StreamDefinitionError("torch_dataset", reason)
        stream = opened.and_return(seed=derive_seed(self._seed, "epoch", epoch), **self._reading)
        for _ in range(epoch):
            stream.reset()
        return stream


def _rank_of_environment() -> WorldRank:
    """Return the rank that ``torchrun`` sets in the environment, which workers inherit."""
    return WorldRank(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


class StreamIterator:
    """One epoch of one shard.

    Args:
        dataset: The dataset.
        worker: The number of the loader's worker.
        shard: The index of the shard, and the number of shards.
    """

    def __init__(self, dataset: StreamDataset, worker: int, shard: tuple[int, int]) -> None:
        self._dataset, self._worker, self._shard = dataset, worker, shard
        self._open_epoch(dataset.next_epoch(worker))

    def _open_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._stream = self._dataset.opened(epoch, *self._shard)
        self._items = iter(self._stream)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch and the position in it, as a JSON object."""
        return {"epoch": self._epoch, "stream": self._stream.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position that `state_dict` returned. The next pass reads the epoch after it.

        Raises:
            StreamStateError: The state belongs to another stream, or to another number of ranks or
                workers.
        """
        try:
            epoch, position = int(state_dict["epoch"]), state_dict["stream"]
        except (TypeError, ValueError, KeyError) as error:
            msg = "this is not the state of a dataset; pass that of the iterator's state_dict()"
            raise StreamStateError(msg) from error
        self._open_epoch(epoch)
        self._stream.load_state_dict(position)
        self._items = iter(self._stream)
        self._dataset.begun(self._worker, epoch)


class LoaderDataset(IterableDataset[Any]):
    """A dataset over a loader, which has workers and ranks of its own."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader

    @override
    def __iter__(self) -> "LoaderIterator":
        """Return an iterator over the next epoch.

        Raises:
            StreamDefinitionError: This is a worker of a PyTorch loader: each would read all items.
        """
        if get_worker_info() is not None:
            reason = (
                "the loader has worker processes of its own, so PyTorch's loader must have "
                "num_workers=0; give reading_service=MultiProcessingReadingService(...) instead"
            )
            raise StreamDefinitionError("torch_dataset", reason)
        return LoaderIterator(self._loader)


class LoaderIterator:
    """One epoch of a loader. It begins with its first item, so a state can be loaded before."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._items: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._items is None:
            self._items = iter(self._loader)
        return next(self._items)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader."""
        return self._loader.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position of the loader."""
        self._loader.load_state_dict(state_dict)
        self._items = None
