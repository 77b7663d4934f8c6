"""StreamDataset: a stream as PyTorch reads it. The one module that imports torch."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import cloudpickle
import torch
from torch.utils.data import IterableDataset, get_worker_info
from typing_extensions import override

from dagster_dataops.errors import StreamDefinitionError, StreamStateError
from dagster_dataops.streams.core.seeds import derived
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.positioned_stream import Reading

MakeStream = Callable[[int, int], DataPipelineBuilder]

_MOST_WORKERS: Final = 4096  # of one rank: eight bytes each


class Shards(NamedTuple):
    """Which rank of how many this process is."""

    rank: int
    world_size: int

    @classmethod
    def of(cls, rank: int | None, world_size: int | None) -> "Shards | None":
        """Return what was given, or what ``torch.distributed`` knows; ``None`` if that is nothing.

        Raises:
            StreamDefinitionError: One of the two was given, or there is no such rank.
        """
        if rank is None and world_size is None:
            group = torch.distributed.is_available() and torch.distributed.is_initialized()
            distributed = torch.distributed
            return cls(distributed.get_rank(), distributed.get_world_size()) if group else None
        if rank is None or world_size is None:
            raise StreamDefinitionError("torch_dataset", "give both rank and world_size, or none")
        if not 0 <= rank < world_size:
            reason = f"rank is {rank}; it must be at least 0 and below world_size, {world_size}"
            raise StreamDefinitionError("torch_dataset", reason)
        return cls(rank, world_size)

    @classmethod
    def of_environment(cls) -> "Shards":
        """Return what ``torchrun`` tells its processes, which their workers inherit."""
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


class StreamDataset(IterableDataset[Any]):
    """A stream of which every worker of every rank reads a shard.

    Epochs are counted in memory that the workers share with the process that starts them: those
    that are started anew for each epoch know which it is, as do those that stay.

    Args:
        make_stream: Returns the stream of a shard.
        seed: Of the streams, by epoch.
        shards: The rank; ``None`` has it asked for when reading begins.
        reading: What becomes of items that fail.
    """

    def __init__(
        self,
        make_stream: MakeStream,
        seed: int,
        shards: Shards | None,
        reading: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self._make = make_stream
        self._seed = seed
        self._shards = shards or Shards.of(None, None)
        self._reading = dict(reading)
        self._epochs = torch.zeros(_MOST_WORKERS, dtype=torch.int64).share_memory_()
        self.opened(0, 0, 1)  # what cannot be is refused here, not in a worker

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_make": cloudpickle.dumps(self._make)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_make": cloudpickle.loads(state["_make"])})

    def set_epoch(self, epoch: int) -> None:
        """Have the next pass be that of ``epoch``, counted from 0."""
        self._epochs.fill_(epoch)

    @override
    def __iter__(self) -> "StreamIterator":
        """Return an iterator over the next epoch of the shard of this worker."""
        shards = self._shards or Shards.of(None, None) or Shards.of_environment()
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        shard = shards.rank * workers + number
        return StreamIterator(self, number, (shard, shards.world_size * workers))

    def next_epoch(self, worker: int) -> int:
        """Return which epoch a worker is to read, and count it as begun."""
        epoch = int(self._epochs[worker])
        self.begun(worker, epoch)
        return epoch

    def begun(self, worker: int, epoch: int) -> None:
        """Take note that a worker reads ``epoch``."""
        self._epochs[worker] = epoch + 1

    def opened(self, epoch: int, shard_idx: int, num_shards: int) -> Reading:
        """Return the stream of a shard at the start of an epoch.

        Raises:
            StreamDefinitionError: The function returned something else than a builder.
        """
        made: object = self._make(shard_idx, num_shards)
        if not isinstance(made, DataPipelineBuilder):
            reason = (
                f"make_stream returned a {type(made).__name__}; it returns a stream that is being "
                "built, without and_return()"
            )
            raise StreamDefinitionError("torch_dataset", reason)
        stream = made.and_return(seed=derived(self._seed, "epoch", epoch), **self._reading)
        for _ in range(epoch):
            stream.reset()
        return stream


class StreamIterator:
    """One epoch of one shard.

    Args:
        dataset: Whose.
        worker: Of the loader.
        shard: Which shard, of how many.
    """

    def __init__(self, dataset: StreamDataset, worker: int, shard: tuple[int, int]) -> None:
        self._dataset, self._worker, self._shard = dataset, worker, shard
        self._go(dataset.next_epoch(worker))

    def _go(self, epoch: int) -> None:
        self._epoch = epoch
        self._stream = self._dataset.opened(epoch, *self._shard)
        self._items = iter(self._stream)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch and the position in it, as JSON."""
        return {"epoch": self._epoch, "stream": self._stream.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position that `state_dict` gave; the epoch behind it is the next one's.

        Raises:
            StreamStateError: It is of another stream, or of another number of ranks or workers.
        """
        try:
            epoch, position = int(state_dict["epoch"]), state_dict["stream"]
        except (TypeError, ValueError, KeyError) as error:
            msg = "this is no state of a dataset; give what state_dict() of its iterator returned"
            raise StreamStateError(msg) from error
        self._go(epoch)
        self._stream.load_state_dict(position)
        self._items = iter(self._stream)
        self._dataset.begun(self._worker, epoch)
