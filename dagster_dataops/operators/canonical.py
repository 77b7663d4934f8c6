"""One JSON form for any value, so that equal values have equal digests in every process.

Pickle cannot serve: it writes sets in an order that changes from process to process. Objects
are taken by their class and attributes; what holds a resource (a lock, a socket, a client) counts
by its class alone.
"""

import enum
import os
import re
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
import xxhash

_MAX_DEPTH: Final = 20


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
    text = orjson.dumps(canonical(value, functions), option=orjson.OPT_SORT_KEYS)
    return xxhash.xxh3_128_hexdigest(text)


def canonical(value: Any, functions: FunctionDigest = function_name, depth: int = 0) -> Any:
    """Return a JSON form of ``value``."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if depth > _MAX_DEPTH:
        return f"<{type_name(value)}>"
    if isinstance(value, (list, tuple)):
        return [canonical(item, functions, depth + 1) for item in value]
    if isinstance(value, Mapping):
        inner = partial(canonical, functions=functions, depth=depth + 1)
        pairs = [[inner(k), inner(v)] for k, v in value.items()]
        return {"mapping": sorted(pairs, key=orjson.dumps)}
    if isinstance(value, Set):
        return {"set": sorted((canonical(item, functions, depth + 1) for item in value), key=orjson.dumps)}
    return _atom(value) or _object(value, functions, depth)


def _atom(value: Any) -> Any:
    match value:
        case enum.Enum():
            return {"enum": f"{type_name(value)}.{value.name}"}
        case str():
            return {"str": value.encode(errors="surrogatepass").hex()} if _odd(value) else f"'{value}"
        case int():
            return {"int": str(int(value))}
        case bytes() | bytearray():
            return {"bytes": xxhash.xxh3_128_hexdigest(bytes(value))}
        case os.PathLike():
            return {"path": os.fspath(value)}
        case re.Pattern():
            return {"pattern": [str(value.pattern), value.flags]}
    return None


def _odd(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _object(value: Any, functions: FunctionDigest, depth: int) -> Any:
    if isinstance(value, type):
        return {"class": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, partial):
        parts = [value.func, list(value.args), value.keywords]
        return {"partial": canonical(parts, functions, depth + 1)}
    if callable(value) and hasattr(value, "__code__"):
        return {"function": functions(value)}
    attributes = getattr(value, "__dict__", None)
    if attributes is None or callable(getattr(value, "__enter__", None)):
        return {"object": type_name(value)}
    return {"object": type_name(value), "attributes": canonical(attributes, functions, depth + 1)}


def type_name(value: object) -> str:
    """Return the qualified name of the class of ``value``."""
    return f"{type(value).__module__}.{type(value).__qualname__}"
