"""One JSON form for any value, so that equal values have equal digests in every process.

Pickle cannot serve: it writes sets in an order that changes from process to process. Objects
are taken by their class and what pickle would keep of them; what cannot be pickled or holds a
resource (a lock, a socket, a client) counts by its class alone.
"""

import enum
import inspect
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
import xxhash

_MAX_DEPTH: Final = 100

FunctionDigest: TypeAlias = Callable[[Any], str]


def function_name(function: Any) -> str:
    """Return the name of a function: what it counts by where its code is not asked for."""
    return f"{function.__module__}.{function.__qualname__}"


def digest(value: object, functions: FunctionDigest = function_name) -> str:
    """Return a digest of ``value`` that is the same in every process and on every machine.

    Args:
        value: Anything.
        functions: How functions inside it count.
    """
    return _hash(canonical(value, functions))


def canonical(value: Any, functions: FunctionDigest = function_name) -> Any:
    """Return a JSON form of ``value``; what is composed appears as a digest of its parts."""
    return _Former(functions).form(value, 0)


class _Former:
    """Makes JSON forms. Objects met again, or met inside themselves, are not gone through twice."""

    def __init__(self, functions: FunctionDigest) -> None:
        self._functions = functions
        self._forms: dict[int, Any] = {}
        self._kept: list[object] = []  # as long as these live, no id is taken a second time

    def form(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        return _named(value) or _atom(value) or self._composed(value, depth)

    def _composed(self, value: Any, depth: int) -> Any:
        if id(value) not in self._forms:
            self._kept.append(value)
            self._forms[id(value)] = f"<{type_name(value)}>"  # stands wherever it contains itself
            if depth < _MAX_DEPTH:
                self._forms[id(value)] = self._container(value, depth + 1)
        return self._forms[id(value)]

    def _container(self, value: Any, depth: int) -> Any:
        inner = partial(self.form, depth=depth)
        if isinstance(value, list):
            return {"list": _hash(list(map(inner, list.__iter__(value))))}
        if isinstance(value, tuple):  # some, such as Dagster's keys, refuse to be iterated
            return {"list": _hash(list(map(inner, tuple.__iter__(value))))}
        if isinstance(value, Mapping):
            return {"mapping": _unordered([inner(k), inner(v)] for k, v in value.items())}
        if isinstance(value, AbstractSet):
            return {"set": _unordered(map(inner, value))}
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        unwrapped = inspect.unwrap(value) if callable(value) else value
        if isinstance(unwrapped, types.FunctionType):
            return {"function": self._functions(unwrapped)}
        kept = None if callable(getattr(value, "__enter__", None)) else _kept_by_pickle(value)
        if kept is None:
            return {"object": type_name(value)}
        return {"object": type_name(value), "state": _hash([self.form(k, depth) for k in kept])}


def _hash(form: Any) -> str:
    return xxhash.xxh3_128_hexdigest(orjson.dumps(form, option=orjson.OPT_SORT_KEYS))


def _unordered(forms: Iterable[Any]) -> str:
    return _hash(sorted(map(_hash, forms)))


def _atom(value: Any) -> Any:
    match value:
        case str():
            return _text(value)
        case int():
            return {"int": str(int(value))}
        case float():
            return {"float": float(value).hex()}
        case bytes() | bytearray():
            return {"bytes": xxhash.xxh3_128_hexdigest(bytes(value))}
    return None


def _named(value: Any) -> Any:
    match value:
        case enum.Enum():
            return {"enum": f"{type_name(value)}.{value.name}"}
        case os.PathLike():
            return {"path": _text(os.fsdecode(value))}
        case re.Pattern():
            return {"pattern": [_text(str(value.pattern)), value.flags]}
        case type():
            return {"class": f"{value.__module__}.{value.__qualname__}"}
    return {"module": value.__name__} if inspect.ismodule(value) else None


def _text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON cannot hold
        return {"str": text.encode(errors="surrogatepass").hex()}
    return f"'{text}"


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
