"""``torch_dataset``: read streams with PyTorch's data loaders. Imports torch on first use."""

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
    """Return a PyTorch ``IterableDataset`` over a stream, for any PyTorch data loader.

    Every worker of every rank reads its own shard. Each pass over the loader is an epoch with a new
    order. The iterators have ``state_dict`` and ``load_state_dict``, so torchdata's
    ``StatefulDataLoader`` resumes after the last batch, given the same number of ranks and workers.

    Args:
        make_stream: Returns the builder of a shard, given ``(shard_idx, num_shards)``. It must call
            ``shard()`` with these, before items are grouped into lists. It is sent to workers with
            cloudpickle.
        seed: The root seed, for all stages without a seed; each epoch derives its own from it.
        rank: The rank of this process. If ``None``, it is taken from ``torch.distributed`` or from
            ``RANK``. The process group must exist, or ``RANK`` must be set, before this call.
        world_size: The number of ranks, found in the same way; give both or neither.
        reading: ``on_error``, ``max_errors`` and ``quarantine``, as in ``and_return()``.

    Raises:
        MissingExtraError: PyTorch is not installed.
        StreamDefinitionError: An argument is invalid.
    """
    check_callable("torch_dataset", "make_stream", make_stream)
    check_seed("torch_dataset", seed)
    try:
        from dagster_dataops.streams.torch_dataset import RankInfo, StreamDataset
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch_dataset()", "torch") from None
    return StreamDataset(make_stream, seed, RankInfo.of(rank, world_size), reading)
