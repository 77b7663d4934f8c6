"""One JSON form for any value, so that equal values have equal digests in every process.

Pickle cannot serve: it writes sets in an order that changes from process to process. Objects
are taken by their class and what pickle would keep of them. What cannot be pickled or holds a
resource (a client, an open file) counts by its class and its public attributes that are plain
values, such as ``base_url``; if it has none, it is reported as unknown. Locks count by their class.
Values that declare themselves operational (`Operational`, ``pydantic.SecretStr``) do not count.
"""

import enum
import inspect
import os
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
import xxhash

from dagster_dataops.hashing.operational import is_operational

_MAX_DEPTH: Final = 100
_LOCKS: Final = frozenset({"_thread", "threading"})
# What a client answers to, where it is a property and no attribute.
_ADDRESSES: Final = ("base_url", "url", "uri", "endpoint", "host", "port", "path", "name", "mode")

FunctionDigest: TypeAlias = Callable[[Any], str]
Ignored: TypeAlias = Callable[[str], bool]


def function_name(function: Any) -> str:
    """Return the name of a function or class: what it counts by where no code is asked for."""
    return f"{function.__module__}.{function.__qualname__}"


def nothing_ignored(_: str) -> bool:
    """Leave out no name."""
    return False


def digest(value: object, functions: FunctionDigest = function_name) -> str:
    """Return a digest of ``value`` that is the same in every process and on every machine.

    Args:
        value: Anything.
        functions: How functions and classes inside it count.
    """
    return digest_of_form(Former(functions).form(value))


def digest_of_form(form: Any) -> str:
    """Return the digest of a JSON form."""
    return xxhash.xxh3_128_hexdigest(orjson.dumps(form, option=orjson.OPT_SORT_KEYS))


class Former:
    """Makes JSON forms. Objects met again, or met inside themselves, are not gone through twice.

    Args:
        functions: How functions and classes count.
        ignored: Names of attributes and keys that do not count.

    Attributes:
        unknown: Types of the objects of which nothing but the class is known.
    """

    def __init__(
        self, functions: FunctionDigest = function_name, ignored: Ignored = nothing_ignored
    ) -> None:
        self.unknown: set[str] = set()
        self._functions = functions
        self._ignored = ignored
        self._forms: dict[int, Any] = {}
        self._kept: list[object] = []  # as long as these live, no id is taken a second time

    def form(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON form of ``value``; what is composed appears as a digest of its parts."""
        if value is None or isinstance(value, bool):
            return value
        return self._named(value, depth) or self.atom(value) or self._composed(value, depth)

    def atom(self, value: Any) -> Any:
        """Return the form of a text, a number or bytes; ``None`` for other values."""
        match value:
            case str():
                return _text(value)
            case int():
                return {"int": str(int(value))}
            case float():
                return {"float": float(value).hex()}
            case bytes() | bytearray():
                return {"bytes": xxhash.xxh3_128_hexdigest(bytes(value))}
        return {"path": _text(os.fsdecode(value))} if isinstance(value, os.PathLike) else None

    def _named(self, value: Any, depth: int) -> Any:
        match value:
            case enum.Enum():
                return {"enum": [self._once(type(value), depth), value.name]}
            case re.Pattern():
                return {"pattern": [_text(str(value.pattern)), value.flags]}
            case types.ModuleType():
                return {"module": value.__name__}
        return None

    def _composed(self, value: Any, depth: int) -> Any:
        if is_operational(value):
            return {"operational": True}
        return self._once(value, depth)

    def _once(self, value: Any, depth: int) -> Any:
        if id(value) not in self._forms:
            self._kept.append(value)
            self._forms[id(value)] = f"<{type_name(value)}>"  # stands wherever it contains itself
            if depth < _MAX_DEPTH:
                self._forms[id(value)] = self._container(value, depth + 1)
        return self._forms[id(value)]

    def _container(self, value: Any, depth: int) -> Any:
        inner = partial(self.form, depth=depth)
        if isinstance(value, list):
            return {"list": digest_of_form(list(map(inner, list.__iter__(value))))}
        if isinstance(value, tuple):  # some, such as Dagster's keys, refuse to be iterated
            return {"list": digest_of_form(list(map(inner, tuple.__iter__(value))))}
        if isinstance(value, Mapping):
            return {"mapping": _unordered([inner(k), inner(v)] for k, v in self._entries(value))}
        if isinstance(value, AbstractSet):
            return {"set": _unordered(map(inner, sorted(value, key=_name_of)))}
        return self.object(value, depth)

    def _entries(self, value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        for key, item in value.items():
            if not (isinstance(key, str) and isinstance(item, str) and self._ignored(key)):
                yield key, item

    def object(self, value: Any, depth: int) -> Any:
        """Return the form of what is neither a plain value nor a container."""
        if isinstance(value, (types.FunctionType, type)):
            return {"code": self._functions(value)}
        made = {"object": self._once(type(value), depth)}
        wrapped = getattr(value, "__wrapped__", None) if callable(value) else None
        if wrapped is not None:
            made["wrapped"] = self.form(wrapped, depth)
        kept = None if _holds_resource(value) else _kept_by_pickle(value)
        if kept is None:
            return made | self.public(value, depth, unknown=wrapped is None)
        if wrapped is None or not isinstance(kept[-1], str):
            made["state"] = digest_of_form([self.form(part, depth) for part in kept])
        return made

    def public(self, value: Any, depth: int, *, unknown: bool) -> dict[str, Any]:
        """Return the public attributes of an object that are plain values.

        Args:
            value: The object.
            depth: How deep it is nested.
            unknown: Whether to report it as unknown if it has no such attribute.
        """
        found = {}
        for name, item in _public_attributes(value):
            form = self._plain(item, depth)
            if form is not None and not self._ignored(name):
                found[name] = form
        if not found and unknown and type(value).__module__ not in _LOCKS:
            self.unknown.add(type_name(value))
        return {"state": digest_of_form(found)}

    def _plain(self, value: Any, depth: int) -> Any:
        """Return the form of a plain value, or of a list of such; ``None`` for other values."""
        if value is None or isinstance(value, bool):
            return {"constant": value}
        if isinstance(value, (list, tuple)):
            forms = [self._plain(item, depth) for item in value]
            return None if None in forms else forms
        return self.atom(value) or (self._named(value, depth) if _is_enum(value) else None)


def _is_enum(value: object) -> bool:
    return isinstance(value, enum.Enum)


def _name_of(value: object) -> str:
    """Return a name to sort functions and classes by, in an order that is the same everywhere."""
    return str(getattr(value, "__qualname__", ""))


def _unordered(forms: Iterable[Any]) -> str:
    return digest_of_form(sorted(map(digest_of_form, forms)))


def _text(text: str) -> Any:
    text = str.__str__(text)  # some, such as Dagster's names of variables, refuse to be shown
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON cannot hold
        return {"str": text.encode(errors="surrogatepass").hex()}
    return f"'{text}"


def _holds_resource(value: Any) -> bool:
    return callable(getattr(value, "__enter__", None))


def _public_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from ((name, v) for name, v in attributes_of(value).items() if not name.startswith("_"))
    for name in _ADDRESSES:
        if isinstance(inspect.getattr_static(type(value), name, None), property | _DESCRIPTORS):
            item = _read(value, name)
            # An address may be an object of its own, such as httpx.URL.
            yield name, item if item is None or _is_plain(item) else str(item)


_DESCRIPTORS = types.GetSetDescriptorType | types.MemberDescriptorType


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bytes, os.PathLike))


def _read(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:  # noqa: BLE001 - properties of users may raise anything
        return None


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes that an object has of its own."""
    found = getattr(value, "__dict__", None)
    return dict(found) if isinstance(found, dict) else {}


def _kept_by_pickle(value: Any) -> list[Any] | None:
    """Return what pickle would rebuild ``value`` from, or ``None`` if it would refuse."""
    try:
        reduced = value.__reduce_ex__(2)
        if isinstance(reduced, str):
            return [getattr(value, "__module__", None), reduced]
        maker, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        return [function_name(maker), arguments, state, list(items or ()), list(pairs or ())]
    except Exception:  # noqa: BLE001 - user objects may raise anything when pickled
        return None


def type_name(value: object) -> str:
    """Return the qualified name of the class of ``value``."""
    return f"{type(value).__module__}.{type(value).__qualname__}"
