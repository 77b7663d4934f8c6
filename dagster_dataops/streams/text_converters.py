"""Split texts and convert them to numbers and tensors, as functions for ``map``."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError, UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.arguments import check_count, texts
from dagster_dataops.streams.torch_loader import needs_torch

_INT64: Final = (-(2**63), 2**63 - 1)
_DIGITS: Final = re.compile(r"[+-]?[0-9A-Za-z]+")


class StrSplitter:
    r"""Splits a text at a separator, as fairseq2's class of this name.

    Args:
        sep: The separator.
        names: The names of the fields; the result is a dict. Without names it is a list.
        indices: The fields to keep, counted from 0: one number, whose field alone is the result, or
            several. They are kept in the order of the text. All if ``None`` or empty.
        exclude: Whether to leave ``indices`` out, and keep the others.

    Raises:
        StreamDefinitionError: An argument is invalid. With ``names``, the indices must ascend, so
            that it is clear which name belongs to which field.

    Example:
        >>> StrSplitter(names=["en", "fr"], indices=[0, 2])("Go.\t17\tVa !")
        {'en': 'Go.', 'fr': 'Va !'}
        >>> StrSplitter(sep=",", indices=1)("a,b,c")
        'b'
    """

    def __init__(
        self,
        sep: str = "\t",
        names: Sequence[str] | None = None,
        indices: int | Iterable[int] | None = None,
        exclude: bool = False,  # noqa: FBT001, FBT002 - the signature that users of fairseq2 know
    ) -> None:
        if not texts("StrSplitter", "sep", [sep]) or not sep:
            raise StreamArgumentError("StrSplitter", f"sep is {sep!r}; it must be a text")
        self.sep, self.exclude = sep, exclude
        self.names = texts("StrSplitter", "names", names) or ()
        self._single = isinstance(indices, int) and not exclude
        listed = [indices] if isinstance(indices, int) else list(indices or ())
        for index in listed:
            check_count("StrSplitter", "an index", index, 0)
        self.indices = tuple(sorted(set(listed)))
        self._check(listed)

    def _check(self, listed: list[int]) -> None:
        if len(listed) != len(self.indices):
            raise StreamDefinitionError("StrSplitter", f"indices has a number twice: {listed}")
        if not self.names or not listed or self.exclude:
            return
        if len(listed) != len(self.names):
            names, indices = counted(len(self.names), "names"), counted(len(listed), "indices")
            raise StreamDefinitionError("StrSplitter", f"got {names} and {indices}")
        if tuple(listed) != self.indices:
            reason = f"indices are {listed}; with names they must ascend, as the fields do"
            raise StreamDefinitionError("StrSplitter", reason)

    def __call__(self, text: str) -> Any:
        """Return the fields: a dict with names, a text for a single index, otherwise a list.

        Raises:
            UnfitRecordError: The value is no text, or has too few fields, or another number than
                names; also a ValueError.
        """
        fields = _text("StrSplitter", text).split(self.sep)
        if self.indices and self.indices[-1] >= len(fields):
            wanted = counted(self.indices[-1] + 1, "fields")
            reason = f"the text has {counted(len(fields), 'fields')}, and {wanted} are needed"
            raise UnfitRecordError(f"StrSplitter: {reason}: {_shown(text)}")
        if self.indices and self.exclude:
            fields = [field for at, field in enumerate(fields) if at not in self.indices]
        elif self.indices:
            fields = [fields[at] for at in self.indices]
        if not self.names:
            return fields[0] if self._single else fields
        if len(fields) != len(self.names):
            got, names = counted(len(fields), "fields"), counted(len(self.names), "names")
            raise UnfitRecordError(f"StrSplitter: got {got} for {names}: {_shown(text)}")
        return dict(zip(self.names, fields, strict=True))

    @override
    def __repr__(self) -> str:
        return f"StrSplitter(sep={self.sep!r}, names={list(self.names)}, indices={self.indices})"


class StrToIntConverter:
    """Converts a text to an integer of 64 bits, as fairseq2's class of this name.

    Args:
        base: The base of the digits, from 2 to 36.

    Raises:
        StreamDefinitionError: The base is out of range.

    Example:
        >>> StrToIntConverter()("-34"), StrToIntConverter(base=8)("34")
        (-34, 28)
    """

    def __init__(self, base: int = 10) -> None:
        check_count("StrToIntConverter", "base", base, 2)
        if base > 36:
            raise StreamDefinitionError("StrToIntConverter", f"base is {base}; at most 36 is known")
        self.base = base

    def __call__(self, text: str) -> int:
        """Return the integer.

        Raises:
            UnfitRecordError: The value is no text, has other characters than digits, or needs more
                than 64 bits; also a ValueError.
        """
        value = _integer(_text("StrToIntConverter", text), self.base, *_INT64)
        if value is None:
            reason = f"must be an integer of 64 bits in base {self.base}, not {_shown(text)}"
            raise UnfitRecordError(f"StrToIntConverter: the text {reason}")
        return value


class StrToTensorConverter:
    """Converts integers in a text, with spaces between, to a tensor of PyTorch.

    It is fairseq2's class of this name, and needs the extra ``torch``.

    Args:
        size: The shape of the tensor; one of its dimensions can be -1. One dimension if ``None``.
        dtype: The type of the elements, an integer type; ``torch.int32`` if ``None``.

    Raises:
        MissingExtraError: PyTorch is not installed.
        StreamDefinitionError: ``dtype`` is no integer type.

    Example:
        >>> StrToTensorConverter(size=(-1, 2))("23 9 12 34")
        tensor([[23,  9],
                [12, 34]], dtype=torch.int32)
    """

    def __init__(self, size: Sequence[int] | None = None, dtype: Any = None) -> None:
        with needs_torch("StrToTensorConverter"):
            from dagster_dataops.streams.torch_transfer import integer_type
        self.size = None if size is None else tuple(size)
        self.dtype, self._least, self._largest = integer_type(dtype)

    def __call__(self, text: str) -> Any:
        """Return the tensor of the integers, of shape ``size``.

        Raises:
            UnfitRecordError: The value is no text, or an element is no integer of the type; also a
                ValueError.
            RuntimeError: The number of integers does not fit ``size``.
        """
        from dagster_dataops.streams.torch_transfer import tensor_of

        values = []
        for number, part in enumerate(filter(None, _text("StrToTensorConverter", text).split(" "))):
            value = _integer(part, 10, self._least, self._largest)
            if value is None:
                reason = f"element {number} is {part!r}, no integer of the type {self.dtype}"
                raise UnfitRecordError(f"StrToTensorConverter: {reason}")
            values.append(value)
        return tensor_of(values, self.dtype, self.size)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UnfitRecordError(f"{name} takes a text, not a {type(value).__name__}")
    return value


def _integer(text: str, base: int, least: int, largest: int) -> int | None:
    """Return the integer in a text; ``None`` if it is none between two limits."""
    if _DIGITS.fullmatch(text) is None:
        return None
    try:
        value = int(text, base)
    except ValueError:  # digits above the base, or thousands of them
        return None
    return value if least <= value <= largest else None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
