"""One JSON form for any value, so that equal values have equal digests in every process.

Pickle cannot serve: it writes sets in an order that changes from process to process. Objects
are taken by their class and attributes; what holds a resource (a lock, a socket, a client) counts
by its class alone.
"""

import enum
import functools
import os
import re
from collections.abc import Mapping, Set
from typing import Any, Final

import orjson
import xxhash

_MAX_DEPTH: Final = 20


def digest(value: object) -> str:
    """Return a digest of ``value`` that is the same in every process and on every machine."""
    text = orjson.dumps(canonical(value), option=orjson.OPT_SORT_KEYS)
    return xxhash.xxh3_128_hexdigest(text)


def canonical(value: Any, depth: int = 0) -> Any:
    """Return a JSON form of ``value``."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if depth > _MAX_DEPTH:
        return f"<{type_name(value)}>"
    if isinstance(value, (list, tuple)):
        return [canonical(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        pairs = [[canonical(k, depth + 1), canonical(v, depth + 1)] for k, v in value.items()]
        return {"mapping": sorted(pairs, key=orjson.dumps)}
    if isinstance(value, Set):
        return {"set": sorted((canonical(item, depth + 1) for item in value), key=orjson.dumps)}
    return _atom(value) or _object(value, depth)


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


def _object(value: Any, depth: int) -> Any:
    if isinstance(value, type):
        return {"class": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, functools.partial):
        parts = [value.func, list(value.args), value.keywords]
        return {"partial": canonical(parts, depth + 1)}
    if callable(value) and hasattr(value, "__code__"):
        from dagster_dataops.operators.code import code_digest

        return {"function": code_digest(value)}
    attributes = getattr(value, "__dict__", None)
    if attributes is None or callable(getattr(value, "__enter__", None)):
        return {"object": type_name(value)}
    return {"object": type_name(value), "attributes": canonical(attributes, depth + 1)}


def type_name(value: object) -> str:
    """Return the qualified name of the class of ``value``."""
    return f"{type(value).__module__}.{type(value).__qualname__}"
