"""Plain values that stand for objects whose content is known, but not by pickle.

Pickle cannot store some of them, and stores others in an order that differs between processes.
"""

import _csv
import contextvars
import io
import json
import random
import struct
import types
import weakref
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from typing_extensions import TypeAliasType

from dagster_dataops.foundation.hashing.source_text import instructions
from dagster_dataops.foundation.hashing.tensors import tensor_content

_HASHES: Final = ("_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2")
_HASH_MODULES: Final = frozenset({*_HASHES, "hmac", "xxhash", "_xxhash"})
_SHAKE_BYTES: Final = 32
_DIALECT: Final = (
    *("delimiter", "doublequote", "escapechar", "lineterminator"),
    *("quotechar", "quoting", "skipinitialspace", "strict"),
)


def stand_in(value: Any) -> list[Any] | None:
    """Return the content of an object; ``None`` for objects of other classes."""
    for kind, content in _CONTENTS.items():
        if isinstance(value, kind):
            return content(value)
    module = type(value).__module__
    if module in _HASH_MODULES and callable(getattr(value, "hexdigest", None)):
        return _hash_content(value)
    tensor = tensor_content(value)
    if tensor is not None:
        return tensor
    of_package = _CONTENTS_BY_PACKAGE.get(module.partition(".")[0])
    return of_package(value) if of_package is not None else None


def _default_of(value: "contextvars.ContextVar[Any]") -> list[Any]:
    """Return what a new context has: the default, if there is one."""
    try:
        return [contextvars.Context().run(value.get)]
    except LookupError:
        return []


def _hash_content(value: Any) -> list[Any]:
    try:
        return [value.name, value.hexdigest()]
    except TypeError:
        return [value.name, value.hexdigest(_SHAKE_BYTES)]


def _sorted_content(value: Any) -> list[Any] | None:
    """Return the entries of a mapping or set without an order of its own."""
    if isinstance(value, Mapping):
        return [dict(sorted(value.items(), key=lambda entry: repr(entry[0])))]
    return [frozenset(value)] if isinstance(value, AbstractSet) else None


def _model_content(value: Any) -> list[Any] | None:
    """Return the language, name, version and parts of a spaCy model."""
    meta = getattr(value, "meta", None)
    return [meta] if isinstance(meta, dict) else None


_CONTENTS_BY_PACKAGE: Final[Mapping[str, Callable[[Any], list[Any] | None]]] = {
    **dict.fromkeys(("rpds", "immutables", "pyrsistent"), _sorted_content),
    "spacy": _model_content,
}
_CONTENTS: Final[Mapping[Any, Callable[[Any], list[Any]]]] = {
    types.MappingProxyType: lambda value: [dict(value)],
    (type({}.keys()), type({}.values()), type({}.items())): list,
    memoryview: lambda value: [value.format, list(value.shape or ()), value.tobytes()],
    contextvars.ContextVar: lambda value: [value.name, *_default_of(value)],
    (io.StringIO, io.BytesIO): lambda value: [value.getvalue(), value.tell()],
    struct.Struct: lambda value: [value.format],
    property: lambda value: [value.fget, value.fset, value.fdel],
    (staticmethod, classmethod): lambda value: [value.__func__],
    types.CodeType: lambda value: [instructions(value)],
    types.CellType: lambda value: [value.cell_contents] if value != types.CellType() else [],
    weakref.ReferenceType: lambda value: [value()],
    random.SystemRandom: lambda _: [],
    TypeAliasType: lambda value: [value.__name__, value.__value__],
    json.JSONDecoder: lambda value: [{k: v for k, v in vars(value).items() if k != "scan_once"}],
    _csv.Dialect: lambda value: [getattr(value, name) for name in _DIALECT],
}
