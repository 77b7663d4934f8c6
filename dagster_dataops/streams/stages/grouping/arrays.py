"""Arrays of PyTorch, NumPy or plain lists: stack, pad and join them.

Neither library is imported here: an item that is an array of one has imported it.
"""

import sys
from collections.abc import Sequence
from typing import Any


def is_array(value: object) -> bool:
    """Return whether a value is a tensor of PyTorch or an array of NumPy."""
    return _is_tensor(value) or _is_numpy(value)


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_numpy(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_sequence(value: Any) -> bool:
    """Return whether a value is an array with one dimension, or a list of numbers."""
    if isinstance(value, list):
        return all(isinstance(item, (int, float)) for item in value)
    return is_array(value) and value.ndim == 1


def stacked(arrays: Sequence[Any]) -> Any:
    """Return arrays of equal shape as one, with a new first dimension."""
    if _is_numpy(arrays[0]):
        return sys.modules["numpy"].stack(arrays)
    try:
        return sys.modules["torch"].stack(list(arrays))
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def padded(arrays: Sequence[Any], pad_value: float, multiple: int) -> Any:
    """Return arrays as one with a new first dimension, padded behind to one length.

    Args:
        arrays: Arrays of shape ``(length, ...)``; the further dimensions are equal.
        pad_value: The value behind shorter arrays.
        multiple: The length becomes a multiple of this number.

    Returns:
        An array of shape ``(number of arrays, length, ...)``.

    Raises:
        ValueError: An array has no dimension, the further dimensions differ, or the type of the
            elements cannot hold ``pad_value``, which is needed.
    """
    if any(array.ndim == 0 for array in arrays):
        raise ValueError("an array without a dimension has no length")
    shapes = {tuple(array.shape[1:]) for array in arrays}
    if len(shapes) > 1:
        sizes = " and ".join(map(str, sorted(shapes)))
        msg = f"they differ in more than their lengths: the further dimensions are {sizes}"
        raise ValueError(msg)
    longest = max(len(array) for array in arrays)
    shape = (len(arrays), -(-longest // multiple) * multiple, *next(iter(shapes)))
    batch = _full(arrays, shape, pad_value)
    if any(len(array) < shape[1] for array in arrays):
        _check_held(batch, pad_value)
    for number, array in enumerate(arrays):
        batch[number, : len(array)] = array
    return batch


def _full(arrays: Sequence[Any], shape: tuple[int, ...], value: float) -> Any:
    """Return a new array of one value, whose type can hold the elements of all arrays."""
    first = arrays[0]
    if _is_numpy(first):
        numpy = sys.modules["numpy"]
        batch = numpy.empty(shape, numpy.result_type(*arrays))
        with numpy.errstate(invalid="ignore"):  # refused by `_check_held`
            batch[...] = numpy.asarray(value).astype(batch.dtype)
        return batch
    kind = first.dtype
    for array in arrays:
        kind = sys.modules["torch"].promote_types(kind, array.dtype)
    return first.new_full(shape, value, dtype=kind)


def _check_held(batch: Any, value: float) -> None:
    """Raise `ValueError` if integers or truth values should hold another number."""
    held = batch.reshape(-1)[:1].tolist()
    if held and isinstance(held[0], int) and held[0] != value:
        msg = (
            f"pad_value {value!r} would become {held[0]!r} in elements of type {batch.dtype}; give "
            "these another pad_value by overrides, or convert them before"
        )
        raise ValueError(msg)


def joined(parts: Sequence[Any], size: int, pad_value: float, *, pinned: bool) -> Any:
    """Return sequences one after another, padded to ``size`` elements.

    Args:
        parts: Sequences of one type, as `is_sequence` accepts them.
        size: The number of elements, at least that of all parts.
        pad_value: The value of the elements behind.
        pinned: Whether a tensor is in pinned memory, if this machine has an accelerator.

    Raises:
        ValueError: The type of the elements cannot hold ``pad_value``, which is needed.
    """
    first = parts[0]
    if isinstance(first, list):
        items = [item for part in parts for item in part]
        return items + [pad_value] * (size - len(items))
    batch, at = _full(parts, (size,), pad_value), 0
    if sum(map(len, parts)) < size:
        _check_held(batch, pad_value)
    for part in parts:
        batch[at : at + len(part)] = part
        at += len(part)
    if pinned and _is_tensor(batch) and sys.modules["torch"].cuda.is_available():
        return batch.pin_memory()
    return batch
