"""`Collater`: make one batch of a list of items, with padding."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError, UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.selectors.grammar import EVERY, Path
from dagster_dataops.foundation.selectors.selector import Selector
from dagster_dataops.streams.core.arguments import check_count
from dagster_dataops.streams.stages.grouping.arrays import is_array, padded, stacked

# Keys whose lists and dicts belong to one sample: they are not collated, but listed.
_OF_SAMPLE: Final = frozenset({"__restore_key__", "__sources__", "__subflavors__"})
_PLAIN: Final = (bool, int, float, str, bytes)

_Step: TypeAlias = str | int


@dataclass(frozen=True)
class CollateOptionsOverride:
    """Other options of a `Collater` for some elements of the items.

    Args:
        selector: The elements, such as ``target`` or ``words[*].ids``; see `Selector`.
        pad_value: As in `Collater`.
        pad_to_multiple: As in `Collater`.

    Example:
        >>> CollateOptionsOverride("target", pad_value=-100)
    """

    selector: str
    pad_value: float | None = None
    pad_to_multiple: int = 1

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            SelectorSyntaxError: The selector is malformed.
            StreamDefinitionError: A multiple is given without a value to pad with.
        """
        Selector(self.selector)
        _check_padding(f"of the selector {self.selector!r} ", self.pad_value, self.pad_to_multiple)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths of the selector."""
        return Selector(self.selector).paths


def _check_padding(what: str, pad_value: object, pad_to_multiple: object) -> None:
    check_count("collate", f"pad_to_multiple {what}".rstrip(), pad_to_multiple, 1)
    if pad_value is None and pad_to_multiple != 1:
        reason = f"pad_to_multiple {what}is {pad_to_multiple}, so pad_value is needed, too"
        raise StreamDefinitionError("collate", reason)
    if pad_value is not None and not isinstance(pad_value, (int, float)):
        reason = f"pad_value {what}is {pad_value!r}; it must be a number or None"
        raise StreamArgumentError("collate", reason)


class Collater:
    """Makes one batch of a list of items of equal structure, as fairseq2's class of this name.

    Dicts become one dict, and lists and tuples one list or tuple, with a batch for each key and
    place. At a place, ``n`` tensors of PyTorch or arrays of NumPy become one:

    - Without ``pad_value``, of shape ``(n, ...)``. Their shapes must be equal.
    - With ``pad_value``, a dict. ``seqs`` has shape ``(n, length, ...)``: each array is padded
      behind to the longest one, rounded up to ``pad_to_multiple``. ``seq_lens`` lists the ``n``
      lengths before. ``is_ragged`` tells whether any element is padding.

    All other values become a list of ``n`` values of one type. The keys ``__restore_key__``,
    ``__sources__`` and ``__subflavors__`` of samples become lists, too.

    Args:
        pad_value: The value to pad with; ``None`` not to pad.
        pad_to_multiple: The multiple that a padded length is rounded up to.
        overrides: Other options for some elements. The first that selects an element counts.

    Raises:
        StreamDefinitionError: An option is invalid.

    Example:
        >>> collater = Collater(pad_value=0, pad_to_multiple=4)
        >>> collater([{"ids": np.array([1, 2]), "n": 1}, {"ids": np.array([3]), "n": 2}])
        {'ids': {'is_ragged': True, 'seqs': array([[1, 2, 0, 0], [3, 0, 0, 0]]),
        'seq_lens': [2, 1]}, 'n': [1, 2]}
    """

    def __init__(
        self,
        pad_value: float | None = None,
        pad_to_multiple: int = 1,
        overrides: Iterable[CollateOptionsOverride] | None = None,
    ) -> None:
        _check_padding("", pad_value, pad_to_multiple)
        self.pad_value, self.pad_to_multiple = pad_value, pad_to_multiple
        self.overrides = tuple(overrides or ())
        for entry in self.overrides:
            _check_override(entry)

    def __call__(self, data: Any) -> Any:
        """Return the batch of a list of items; anything else is a list of one item.

        Raises:
            UnfitRecordError: The list is empty, or the structure, types or shapes of items differ.
        """
        items = data if isinstance(data, list) else [data]
        if not items:
            raise UnfitRecordError("collate: the list of items is empty; it needs at least one")
        return self._collated(items, ())

    @override
    def __repr__(self) -> str:
        options = f"pad_value={self.pad_value}, pad_to_multiple={self.pad_to_multiple}"
        return f"Collater({options}, overrides={list(self.overrides)})"

    def _collated(self, values: list[Any], path: tuple[_Step, ...]) -> Any:
        first = values[0]
        _check_alike(values, path)
        if path and path[-1] in _OF_SAMPLE:
            return list(values)
        if isinstance(first, Mapping):
            return {
                key: self._collated([value[key] for value in values], (*path, key)) for key in first
            }
        if isinstance(first, (list, tuple)):
            collated = [
                self._collated([value[at] for value in values], (*path, at))
                for at in range(len(first))
            ]
            return _like(first, collated)
        return self._batched(values, path) if is_array(first) else list(values)

    def _batched(self, arrays: list[Any], path: tuple[_Step, ...]) -> Any:
        chosen: Any = next((value for value in self.overrides if _selects(value, path)), self)
        try:
            if chosen.pad_value is None:
                return stacked(arrays)
            seqs = padded(arrays, chosen.pad_value, chosen.pad_to_multiple)
        except ValueError as error:
            shapes = ", ".join(str(tuple(array.shape)) for array in arrays[:4])
            advice = "" if chosen.pad_value is not None else "; pad_value pads different lengths"
            reason = f"cannot be one array (shapes {shapes}): {error}{advice}"
            raise UnfitRecordError(f"collate: the arrays{_at(path)} {reason}") from error
        lengths = [len(array) for array in arrays]
        ragged = any(length != seqs.shape[1] for length in lengths)
        return {"is_ragged": ragged, "seqs": seqs, "seq_lens": lengths}


def _check_override(entry: object) -> None:
    if not isinstance(entry, CollateOptionsOverride):
        reason = f"overrides has a {type(entry).__name__}; each is a CollateOptionsOverride"
        raise StreamArgumentError("collate", reason)


def _selects(entry: CollateOptionsOverride, path: tuple[_Step, ...]) -> bool:
    return any(
        len(steps) == len(path)
        and all(
            step == here or (step is EVERY and isinstance(here, int))
            for step, here in zip(steps, path, strict=True)
        )
        for steps in entry.paths
    )


def _check_alike(values: Sequence[Any], path: tuple[_Step, ...]) -> None:
    """Check that values have one type, and containers the same keys or lengths."""
    first, kind = values[0], _kind(values[0])
    listed = bool(path) and path[-1] in _OF_SAMPLE
    for number, value in enumerate(values[1:], 1):
        if _kind(value) != kind:
            reason = f"is a {_kind(value)}, and that of item 0 is a {kind}"
        elif listed:
            continue
        elif isinstance(first, Mapping) and (odd := first.keys() ^ value.keys()):
            key = min(odd, key=str)
            more = "no" if key in first else "a further"
            reason = f"has {more} key {key!r}, unlike that of item 0"
        elif isinstance(first, (list, tuple)) and len(value) != len(first):
            reason = f"has {len(value):,} elements, and that of item 0 has {len(first):,}"
        else:
            continue
        raise UnfitRecordError(f"collate: the value{_at(path)} of item {number} {reason}")


def _kind(value: object) -> str:
    """Return the name of the kind of a value. All objects that are not plain are one kind."""
    if isinstance(value, Mapping):
        return "dict"
    for kind in (*_PLAIN, list, tuple):
        if isinstance(value, kind):
            return kind.__name__
    return "array" if is_array(value) else "object"


def _at(path: tuple[_Step, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f" at {text.removeprefix('.')!r}" if text else ""


def _like(container: Any, values: list[Any]) -> Any:
    if isinstance(container, list):
        return values
    fields = hasattr(container, "_fields")  # a named tuple
    return type(container)(*values) if fields else tuple(values)
