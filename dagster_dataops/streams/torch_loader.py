"""Read streams with PyTorch: ``torch_dataset``, ``pin_memory``, ``to_device``.

PyTorch is imported on first use.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.streams.core.arguments import check_callable, check_seed
from dagster_dataops.streams.core.ranks import given_rank
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

if TYPE_CHECKING:
    from dagster_dataops.streams.torch_dataset import Loader, LoaderDataset, StreamDataset


@overload
def torch_dataset(make_stream: "Loader") -> "LoaderDataset": ...
@overload
def torch_dataset(
    make_stream: Callable[[int, int], DataPipelineBuilder],
    *,
    seed: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    **reading: Any,
) -> "StreamDataset": ...


def torch_dataset(
    make_stream: "Callable[[int, int], DataPipelineBuilder] | Loader",
    *,
    seed: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    **reading: Any,
) -> "StreamDataset | LoaderDataset":
    """Return a PyTorch ``IterableDataset`` over a stream, for any PyTorch data loader.

    Over a `DataLoader2`, each pass is its next epoch. It has workers and ranks of its own, so
    ``num_workers`` of the PyTorch loader stays 0; ``StatefulDataLoader`` resumes after the last
    batch with any number of both.

    Over a function that makes the stream of a shard, every worker of every rank reads its own
    shard, and each pass over the loader is an epoch with a new order. The iterators have
    ``state_dict`` and ``load_state_dict``, so torchdata's ``StatefulDataLoader`` resumes after the
    last batch, given the same number of ranks and workers.

    Args:
        make_stream: A `DataLoader2`, without other arguments; or a function that returns the
            builder of a shard, given ``(shard_idx, num_shards)``. The function must call
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
    if not callable(make_stream):
        if not hasattr(make_stream, "load_state_dict"):
            check_callable("torch_dataset", "make_stream", make_stream)
        with needs_torch("torch_dataset()"):
            from dagster_dataops.streams.torch_dataset import LoaderDataset
        return LoaderDataset(make_stream)
    check_seed("torch_dataset", seed)
    with needs_torch("torch_dataset()"):
        from dagster_dataops.streams.torch_dataset import StreamDataset
    return StreamDataset(make_stream, seed, given_rank("torch_dataset", rank, world_size), reading)


def pin_memory(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, such as those of a loader, with their tensors in pinned memory.

    Tensors in dicts, lists and tuples are moved, too. Without an accelerator the items stay as they
    are. Nothing is read ahead: the state of the loader stays exact.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    with needs_torch("pin_memory()"):
        from dagster_dataops.streams.torch_transfer import pinned
    return pinned(items)


def to_device(items: Iterable[Any], device: Any) -> Iterator[Any]:
    """Yield items, such as those of a loader, with their tensors on a device.

    Tensors in dicts, lists and tuples are moved, too; from pinned memory while the program goes on.
    Nothing is read ahead: the state of the loader stays exact.

    Args:
        items: The items.
        device: The device, such as ``cuda:0``.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    with needs_torch("to_device()"):
        from dagster_dataops.streams.torch_transfer import on_device
    return on_device(items, device)


@contextmanager
def needs_torch(feature: str) -> Iterator[None]:
    """Name the extra if PyTorch cannot be imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(feature, "torch") from None
