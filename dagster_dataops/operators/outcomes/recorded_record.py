"""`RecordedRecord`: a record that notes which of its columns are read and changed.

Copies, as by ``record | {...}``, continue the notes of their record. A use that shows all columns,
such as iteration, counts as a use of the whole record.

Code in C reads a dict without calling its methods, so that nothing can be noted. `ShieldedRecord`
is no dict to such code, which refuses it. To Python, ``isinstance`` included, it is one.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final, Self

from dagster_dataops.foundation.override import override
from dagster_dataops.records import Record

_ABSENT: Final = object()


class ReadLog:
    """The columns that were read of a record and its copies.

    Attributes:
        columns: The columns that were read one by one, also missing ones.
        whole: Whether all columns were seen.
    """

    __slots__ = ("columns", "whole")

    def __init__(self) -> None:
        self.columns: dict[str, None] = {}
        self.whole = False


class RecordedRecord(dict[str, Any]):
    """A record that notes its use.

    Args:
        record: The record. Keys of several characters become new objects: a dict that has one of
            these objects as its key got it from this record.

    Attributes:
        log: The columns that were read.
        origin: The record as it was; never changed.
        key_objects: The objects that are the keys, by name.
        placed: The columns of the record that were not removed since. They may have other values.
        passed: The columns of ``placed`` whose value was not replaced.
    """

    __slots__ = ("key_objects", "log", "origin", "passed", "placed")

    def __init__(self, record: Record) -> None:
        self.key_objects = {name: _new_object(name) for name in record}
        super().__init__((self.key_objects[name], value) for name, value in record.items())
        self.log = ReadLog()
        self.origin: Mapping[str, Any] = record
        self.placed = set(record)
        self.passed = set(record)

    def plain(self) -> Record:
        """Return the content as a plain dict; nothing counts as read."""
        return dict([*dict.items(self)])

    def _read(self, key: object) -> None:
        """Note a column whose value is read, unless the value was set before."""
        if not dict.__contains__(self, key) or key in self.passed:
            self._name(key)

    def _name(self, key: object) -> None:
        """Note a column that was named; an object of `key_objects` is no name."""
        if isinstance(key, str) and not (len(key) > 1 and self.key_objects.get(key) is key):
            self.log.columns[str(key)] = None

    def _all(self) -> None:
        self.log.whole = True

    def _copy(self, change: Callable[[Any], Any]) -> "RecordedRecord":
        copied = RecordedRecord.__new__(RecordedRecord)
        dict.__init__(copied, [(key, change(value)) for key, value in dict.items(self)])
        copied.log, copied.origin, copied.key_objects = self.log, self.origin, self.key_objects
        copied.placed, copied.passed = set(self.placed), set(self.passed)
        return copied

    @override
    def __getitem__(self, key: str) -> Any:
        self._read(key)
        return super().__getitem__(key)

    @override
    def get(self, key: str, default: Any = None) -> Any:
        self._read(key)
        return super().get(key, default)

    @override
    def __contains__(self, key: object) -> bool:
        self._read(key)
        return super().__contains__(key)

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        self.passed.discard(key)
        super().__setitem__(key, value)

    @override
    def __delitem__(self, key: str) -> None:
        self._name(key)
        super().__delitem__(key)
        self.passed.discard(key)
        self.placed.discard(key)

    @override
    def pop(self, key: str, default: Any = _ABSENT) -> Any:
        self._name(key)
        self.passed.discard(key)
        self.placed.discard(key)
        return super().pop(key) if default is _ABSENT else super().pop(key, default)

    @override
    def popitem(self) -> tuple[str, Any]:
        self._all()
        key, value = super().popitem()
        self.passed.discard(key)
        self.placed.discard(key)
        return key, value

    @override
    def clear(self) -> None:
        self._all()
        super().clear()
        self.passed.clear()
        self.placed.clear()

    @override
    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    @override
    def update(self, *source: Any, **named: Any) -> None:
        for key, value in _pairs(*source):
            self[key] = value
        for key, value in named.items():
            self[key] = value

    @override
    def copy(self) -> "RecordedRecord":
        return self._copy(lambda value: value)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> "RecordedRecord":
        return self._copy(lambda value: copy.deepcopy(value, memo))

    @override
    def __or__(self, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        joined = self.copy()
        joined.update(other)
        return joined

    @override
    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        return {**other, **self}

    @override
    def __ior__(self, other: Any) -> Self:  # type: ignore[override]  # as of a dict
        self.update(other)
        return self

    @override
    def __reduce_ex__(self, protocol: Any) -> Any:
        self._all()
        return dict, (self.plain(),)


class ShieldedRecord:
    """A `RecordedRecord` behind a class that is no dict to code in C.

    Args:
        recorded: The record; it notes the use of this object.
    """

    __slots__ = ("recorded",)
    __hash__ = None  # type: ignore[assignment]  # as of a dict

    def __init__(self, recorded: RecordedRecord) -> None:
        self.recorded = recorded

    @property  # type: ignore[misc]
    @override
    def __class__(self) -> type:
        return dict


def _new_object(name: str) -> str:
    """Return an equal text that is another object, except for texts of one character."""
    return name[:1] + name[1:]


def _pairs(source: Any = ()) -> Iterable[tuple[str, Any]]:
    """Return the pairs of an argument of ``dict.update``."""
    if isinstance(source, RecordedRecord):
        source._all()  # noqa: SLF001 - of this class
        return list(dict.items(source))
    return [(key, source[key]) for key in source.keys()] if hasattr(source, "keys") else source  # noqa: SIM118 - as update does


def _whole_use(name: str) -> Callable[..., Any]:
    """Return a method of dict that counts as a use of the whole record."""
    method = getattr(dict, name)

    def used(self: RecordedRecord, *arguments: Any) -> Any:
        self._all()
        return method(self, *arguments)

    used.__name__ = name
    return used


def _shielded(name: str) -> Callable[..., Any]:
    """Return a method of `ShieldedRecord` that calls that of the record."""

    def call(self: ShieldedRecord, *positional: Any, **named: Any) -> Any:
        arguments = [
            argument.recorded if type(argument) is ShieldedRecord else argument
            for argument in positional
        ]
        returned = getattr(self.recorded, name)(*arguments, **named)
        if returned is self.recorded:
            return self
        return ShieldedRecord(returned) if type(returned) is RecordedRecord else returned

    call.__name__ = name
    return call


_WHOLE: Final = (
    "__iter__", "__len__", "__reversed__", "__eq__", "__ne__", "__repr__", "items", "keys",
    "values",
)  # fmt: skip
_OTHERS: Final = (
    "__getitem__", "__setitem__", "__delitem__", "__contains__", "__or__", "__ror__", "__ior__",
    "__copy__", "__deepcopy__", "__reduce_ex__", "get", "pop", "popitem", "clear", "setdefault",
    "update", "copy",
)  # fmt: skip
for _name in _WHOLE:
    setattr(RecordedRecord, _name, _whole_use(_name))
for _name in (*_WHOLE, *_OTHERS):
    setattr(ShieldedRecord, _name, _shielded(_name))
MutableMapping.register(ShieldedRecord)
