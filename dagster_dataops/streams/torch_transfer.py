"""Move the tensors of items: into pinned memory, or to a device. Imports torch."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch


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
            return {key: moved(one, move) for key, one in item.items()}
        case tuple() if hasattr(item, "_fields"):  # a named tuple
            return type(item)(*(moved(one, move) for one in item))
        case list() | tuple():
            return type(item)(moved(one, move) for one in item)
    return item
