"""`Batch` and ``generic_batch``: one object of several samples, in Energon's names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.records import RESTORE_KEY, SOURCES
from dagster_dataops.training.cooking.samples import KEYS, Sample

_SUBFLAVORS: Final = "__subflavors__"


class Batch(Sample):
    """Samples that are read together: each field holds those of all samples.

    ``__key__`` and ``__restore_key__`` are lists, so that `restore_record` and ``restore_sample``
    of the loader make a batch again by its ``__restore_key__``. ``__sources__`` has the sources of
    all samples. Subclasses declare fields by annotations, as those of `Sample` do.

    Example:
        >>> @edataclass
        ... class TextBatch(Batch):
        ...     text: list[str]
        >>> samples = [TextSample(__key__="0", text="a"), TextSample(__key__="1", text="b")]
        >>> TextBatch.from_samples(samples)
        TextBatch(__key__=['0', '1'], text=['a', 'b'])
    """

    @classmethod
    def from_samples(cls, samples: Sequence[Mapping[str, Any]], **fields: Any) -> Self:
        """Return the batch of samples; fields of samples that the class lacks are left out.

        Args:
            samples: The samples. Tensors and arrays of one field are padded with zeros and
                stacked; other values become a list.
            **fields: Fields whose values are given.

        Raises:
            TypeError: A sample lacks a field of the class.
        """
        names = [*_keys_of(samples), *(field for field in cls.field_types() if field not in fields)]
        batches: dict[str, Any] = {}
        for name in names:
            lacking = next((sample for sample in samples if name not in sample), None)
            if lacking is None:
                batches[name] = _batched(name, [sample[name] for sample in samples])
            elif name in cls.required_fields():
                key = lacking.get("__key__")
                msg = f"{cls.__name__}.from_samples: the sample {key!r} has no {name!r}"
                raise TypeError(msg)
        return cls(**{**batches, **fields})

    def pin_memory(self) -> Self:
        """Return the batch with its tensors in pinned memory, for copies to a device.

        Raises:
            MissingExtraError: PyTorch is not installed.
        """
        moved = _transfer("Batch.pin_memory()").moved(self, lambda tensor: tensor.pin_memory())
        return type(self)(**moved)


def generic_batch(batch: Sequence[Any]) -> Any:
    """Return the batch of values, by their type.

    Tensors and arrays are padded and stacked; dicts, samples and named tuples become one whose
    values are batches; anything else becomes a list. Keys of samples stay lists.

    Example:
        >>> generic_batch([{"n": 1}, {"n": 2}])
        {'n': [1, 2]}
    """
    first = batch[0]
    if isinstance(first, Batch):
        return type(first).from_samples(batch)
    if isinstance(first, Mapping):
        batches = {name: _batched(name, [sample[name] for sample in batch]) for name in first}
        return sample_of(type(first), batches) if isinstance(first, Sample) else batches
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(generic_batch, zip(*batch, strict=True)))
    return batch_pad_stack(batch) if _is_array(first) else list(batch)


def batch_list(batch: Sequence[Any]) -> list[Any]:
    """Return the values as a list."""
    return list(batch)


def batch_stack(batch: Sequence[Any]) -> Any:
    """Return tensors or arrays of one shape, stacked along a new first dimension.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    return _stacked(batch)(batch)


def batch_pad_stack(batch: Sequence[Any]) -> Any:
    """Return tensors or arrays, padded with zeros at their ends to one shape, and stacked.

    Raises:
        ValueError: Their numbers of dimensions differ.
    """
    shapes = [tuple(value.shape) for value in batch]
    if len({len(shape) for shape in shapes}) > 1:
        msg = f"values of {len(shapes)} samples have other numbers of dimensions: {shapes}"
        raise ValueError(msg)
    longest = tuple(map(max, zip(*shapes, strict=True)))
    if len(set(shapes)) == 1:
        return batch_stack(batch)
    return batch_stack([_padded(value, longest) for value in batch])


def converted(value: Any, kind: type | None) -> Any:
    """Return a sample or a batch as another type, by the names of the fields.

    Args:
        value: A dict, a sample or a named tuple.
        kind: ``dict``, a class of samples or batches, or of named tuples; ``None`` for its own.

    Raises:
        TypeError: The value has no fields, or lacks one of the type.
    """
    if kind is None or (isinstance(value, kind) and kind is not dict):
        return value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if not isinstance(value, Mapping):
        msg = f"a {type(value).__name__} has no fields, so it cannot become a {kind.__name__}"
        raise TypeError(msg)
    if kind is dict:
        return dict(value)
    fields = getattr(kind, "_fields", None)
    return kind(**({name: value[name] for name in fields} if fields else value))


def sample_of(kind: Any, fields: Mapping[str, Any]) -> Any:
    """Return a sample of a class, without checks of names that the class does not declare."""
    sample = kind.__new__(kind)
    sample.update(fields)
    return sample


def batched_as(kind: type | None, samples: Sequence[Any]) -> Any:
    """Return the batch of samples as a type; ``None`` for that of the samples."""
    if isinstance(kind, type) and issubclass(kind, Batch):
        return kind.from_samples(samples)
    return converted(generic_batch(samples), kind)


def _keys_of(samples: Sequence[Mapping[str, Any]]) -> list[str]:
    return [name for name in KEYS if all(name in sample for sample in samples)]


def _batched(name: str, values: list[Any]) -> Any:
    if name == SOURCES:
        return [source for item in values for source in item or ()]
    if name in {"__key__", RESTORE_KEY, _SUBFLAVORS}:
        return values
    return generic_batch(values)


def _is_array(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("shape", "dtype", "ndim"))


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _stacked(batch: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    if _is_tensor(batch[0]):
        stacked: Callable[[Sequence[Any]], Any] = _transfer("batch_stack()").stacked
        return stacked
    import numpy as np

    return np.stack


def _padded(value: Any, shape: tuple[int, ...]) -> Any:
    if _is_tensor(value):
        padded = value.new_zeros(shape)
    else:
        import numpy as np

        padded = np.zeros(shape, value.dtype)
    padded[tuple(map(slice, value.shape))] = value
    return padded


def _transfer(feature: str) -> Any:
    try:
        from dagster_dataops.streams import torch_transfer
    except ImportError:
        raise MissingExtraError(feature, "torch") from None
    return torch_transfer
