"""Make tensors of numbers, and move those of items to a device. Imports torch."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from dagster_dataops.errors import StreamDefinitionError


def pinned(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items with their tensors in pinned memory, if this machine has an accelerator."""
    if not torch.cuda.is_available():
        return iter(items)
    return (moved(item, lambda tensor: tensor.pin_memory()) for item in items)


def on_device(items: Iterable[Any], device: Any) -> Iterator[Any]:
    """Yield items with their tensors on a device."""
    target = torch.device(device)
    return (moved(item, lambda tensor: tensor.to(target, non_blocking=True)) for item in items)


def moved(item: Any, move: Callable[[Any], Any]) -> Any:
    """Return an item with all its tensors moved; tensors in dicts, lists and tuples, too."""
    match item:
        case torch.Tensor():
            return move(item)
        case Mapping():
            return {key: moved(value, move) for key, value in item.items()}
        case tuple() if hasattr(item, "_fields"):  # a named tuple
            return type(item)(*(moved(value, move) for value in item))
        case list() | tuple():
            return type(item)(moved(value, move) for value in item)
    return item


def integer_type(dtype: Any) -> tuple[Any, int, int]:
    """Return an integer type of PyTorch, by default ``int32``, its least and its largest value."""
    kind = torch.int32 if dtype is None else dtype
    try:
        limits = torch.iinfo(kind)
    except TypeError:
        reason = f"dtype is {kind}; it must be an integer type of PyTorch, such as torch.int64"
        raise StreamDefinitionError("StrToTensorConverter", reason) from None
    return kind, int(limits.min), int(limits.max)


def tensor_of(values: Sequence[int], kind: Any, size: tuple[int, ...] | None) -> Any:
    """Return a tensor of integers.

    Args:
        values: The integers.
        kind: The type of the elements.
        size: The shape, with at most one -1; ``None`` for one dimension.
    """
    tensor = torch.tensor(values, dtype=kind)
    return tensor if size is None else tensor.view(size)


def tensor_of_array(array: Any) -> Any:
    """Return a tensor of a NumPy array; the values are copied."""
    return torch.from_numpy(array.copy())


def stacked(tensors: Sequence[Any]) -> Any:
    """Return tensors of one shape, stacked along a new first dimension."""
    return torch.stack(list(tensors))
