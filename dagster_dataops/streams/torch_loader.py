"""Streams in PyTorch: the door to an adapter that imports it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.streams.core.arguments import check_callable, check_seed
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

if TYPE_CHECKING:
    from dagster_dataops.streams.torch_dataset import StreamDataset


def torch_dataset(
    make_stream: Callable[[int, int], DataPipelineBuilder],
    *,
    seed: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    **reading: Any,
) -> "StreamDataset":
    """Return a PyTorch ``IterableDataset`` over a stream, for any of PyTorch's data loaders.

    Every worker of every rank reads a shard of its own; each pass over the loader is an epoch,
    shuffled anew. Its iterators have ``state_dict`` and ``load_state_dict``, by which torchdata's
    ``StatefulDataLoader`` goes on behind the last batch, with as many ranks and workers.

    Args:
        make_stream: Returns the stream of a shard, given ``(shard_idx, num_shards)``: it is to
            call ``shard()`` with them where that belongs, before items are made into lists. Sent
            to workers by cloudpickle.
        seed: From which the seeds of stages are derived that were given none, by epoch.
        rank: Of this process; found by ``torch.distributed`` or from ``RANK`` if ``None``. The
            process group must be there when this is called, or ``RANK`` be set.
        world_size: How many ranks there are; found likewise, together with ``rank``.
        reading: ``on_error``, ``max_errors`` and ``quarantine``, as ``and_return()`` takes them.

    Raises:
        MissingExtraError: PyTorch is not installed.
        StreamDefinitionError: An argument cannot be.
    """
    check_callable("torch_dataset", "make_stream", make_stream)
    check_seed("torch_dataset", seed)
    try:
        from dagster_dataops.streams.torch_dataset import Shards, StreamDataset
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch_dataset()", "torch") from None
    return StreamDataset(make_stream, seed, Shards.of(rank, world_size), reading)
