"""Convert any value to a canonical JSON form, so that equal values have equal digests everywhere.

Pickle is not used because it writes sets in an order that differs between processes. An object
counts by its class and the state that pickle would store. An object that cannot be pickled or holds
a resource (a client, an open file) counts by its class and its public attributes with plain values,
such as ``base_url``. If it has none, it is reported as unknown. Locks count by their class.

Operational values (`Operational`, ``pydantic.SecretStr``) do not count.
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

from dagster_dataops.foundation.hashing.moved_modules import counted_module
from dagster_dataops.foundation.hashing.operational import is_operational

# The end of a digest of values that version 0.2 of the package compared by weaker rules.
RULES: Final = ".2"
_MAX_DEPTH: Final = 100
_LOCKS: Final = frozenset({"_thread", "threading"})
# Attributes of clients that may be properties.
_ADDRESSES: Final = ("base_url", "url", "uri", "endpoint", "host", "port", "path", "name", "mode")

FunctionDigest: TypeAlias = Callable[[Any], str]
Ignored: TypeAlias = Callable[[str], bool]
PathForm: TypeAlias = Callable[["os.PathLike[str]"], dict[str, str] | None]


def function_name(function: Any) -> str:
    """Return the qualified name of a function or class: its form where code does not count."""
    return f"{counted_module(function.__module__)}.{function.__qualname__}"


def ignore_nothing(_: str) -> bool:
    """Ignore no names."""
    return False


def text_alone(_: "os.PathLike[str]") -> None:
    """Return no form: only the text of a path counts."""


def digest(value: object, functions: FunctionDigest = function_name) -> str:
    """Return a digest of ``value`` that is equal in every process and on every machine.

    Args:
        value: Any value.
        functions: Returns the form of functions and classes inside it.
    """
    return digest_of_form(FormBuilder(functions).form(value))


def called(value: Any) -> Any:
    """Return the function that a module stands for if it can be called; else the value."""
    stands = issubclass(type(value), types.ModuleType) and hasattr(type(value), "__wrapped__")
    return value.__wrapped__ if stands else value


def digest_of_form(form: Any) -> str:
    """Return the digest of a JSON form."""
    return xxhash.xxh3_128_hexdigest(orjson.dumps(form, option=orjson.OPT_SORT_KEYS))


def end_of_rules(digests: Iterable[str]) -> str:
    """Return the end of a digest that is made of others: `RULES` if one of them has it."""
    return RULES if any(part.endswith(RULES) for part in digests) else ""


class FormBuilder:
    """Converts values to JSON forms. Each object is processed once, also if it contains itself.

    Args:
        functions: Returns the form of functions and classes.
        ignored: Returns whether a name of an attribute or key does not count.
        paths: Returns the form of a path whose content counts; ``None`` for other paths.

    Attributes:
        unknown: The types of objects that count only by their class.
    """

    def __init__(
        self,
        functions: FunctionDigest = function_name,
        ignored: Ignored = ignore_nothing,
        paths: PathForm = text_alone,
    ) -> None:
        self.unknown: set[str] = set()
        self._functions = functions
        self._ignored = ignored
        self._paths = paths
        self._forms: dict[int, Any] = {}
        self._alive: list[object] = []  # keeps objects alive, so that ids are not reused

    def form(self, value: Any, depth: int = 0) -> Any:
        """Return the JSON form of ``value``; composed values become a digest of their parts."""
        if value is None or type(value) is bool:
            return value
        if self._is_proxy(value):
            return self._proxy_form(value, depth)
        return (
            self._special_form(value, depth)
            or self.atom(value)
            or self._composed_form(value, depth)
        )

    def atom(self, value: Any) -> Any:
        """Return the form of a text, number, bytes or path; ``None`` for other values."""
        match value:
            case str():
                return _text(value)
            case int():
                return {"int": str(int(value))}
            case float():
                return {"float": float(value).hex()}
            case bytes() | bytearray():
                return {"bytes": xxhash.xxh3_128_hexdigest(bytes(value))}
        return self._path_form(value) if isinstance(value, os.PathLike) else None

    def _path_form(self, value: "os.PathLike[str]") -> Any:
        return self._paths(value) or {"path": _text(os.fsdecode(value))}

    def _is_proxy(self, value: Any) -> bool:
        """Return whether the attributes of an object cannot be read.

        Examples are a lazy import of a package that is not installed, and the current request of a
        web framework outside of a request.
        """
        try:
            value.__class__  # noqa: B018 - this is what isinstance reads
        except Exception:  # noqa: BLE001 - user objects may raise anything
            return True
        return False

    def _proxy_form(self, value: Any, depth: int) -> Any:
        """Return the class and the plain values of an object without running its code."""
        try:
            state = object.__getattribute__(value, "__dict__")
        except AttributeError:  # only slots
            state = {}
        plain = {
            name: form
            for name, item in state.items()
            if item is not None and (form := self._plain_form(item, depth)) is not None
        }
        if not plain:
            self.unknown.add(type_name(value))
        return {"proxy": [self._form_once(type(value), depth), digest_of_form(plain)]}

    def _special_form(self, value: Any, depth: int) -> Any:
        match value:
            case enum.Enum():
                return {"enum": [self._form_once(type(value), depth), value.name]}
            case re.Pattern():
                return {"pattern": [_text(str(value.pattern)), value.flags]}
            case types.ModuleType() if (function := called(value)) is not value:
                return self._composed_form(function, depth)
            case types.ModuleType():
                return {"module": value.__name__}
        return None

    def _composed_form(self, value: Any, depth: int) -> Any:
        if is_operational(value):
            return {"operational": True}
        return self._form_once(value, depth)

    def _form_once(self, value: Any, depth: int) -> Any:
        if id(value) not in self._forms:
            self._alive.append(value)
            # The form where the object contains itself.
            self._forms[id(value)] = f"<{type_name(value)}>"
            if depth < _MAX_DEPTH:
                self._forms[id(value)] = self._container_form(value, depth + 1)
        return self._forms[id(value)]

    def _container_form(self, value: Any, depth: int) -> Any:
        inner = partial(self.form, depth=depth)
        if isinstance(value, list):
            return {"list": digest_of_form(list(map(inner, list.__iter__(value))))}
        if isinstance(value, tuple):  # some tuples, such as Dagster's keys, forbid iteration
            return {"list": digest_of_form(list(map(inner, tuple.__iter__(value))))}
        if isinstance(value, Mapping):
            return {
                "mapping": unordered_digest(
                    [inner(k), inner(v)] for k, v in self._counted_entries(value)
                )
            }
        if isinstance(value, AbstractSet):
            return {"set": unordered_digest(map(inner, sorted(value, key=_name_of)))}
        return self.object(value, depth)

    def _counted_entries(self, value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        for key, item in value.items():
            if not (isinstance(key, str) and isinstance(item, str) and self._ignored(key)):
                yield key, item

    def object(self, value: Any, depth: int) -> Any:
        """Return the form of a value that is neither plain nor a container."""
        if isinstance(value, (types.FunctionType, type)):
            return {"code": self._functions(value)}
        form = {"object": self._form_once(type(value), depth)}
        from dagster_dataops.foundation.hashing.tensors import tensor_content  # rare

        tensor = tensor_content(value)
        if tensor is not None:
            return form | {"content": self.form(tensor, depth)}
        wrapped = read_attribute(value, "__wrapped__") if callable(value) else None
        if wrapped is not None:
            form["wrapped"] = self.form(wrapped, depth)
        kept = None if self._is_resource(value) else self._state_of(value)
        if kept is None:
            return form | self.public(value, depth, unknown=wrapped is None)
        if wrapped is None or not isinstance(kept[-1], str):
            form["state"] = digest_of_form(self._state_forms(value, kept, depth))
        return form

    def _is_resource(self, value: Any) -> bool:
        """Return whether an object counts by its public attributes, not by its state."""
        return holds_resource(value)

    def _state_of(self, value: Any) -> list[Any] | None:
        """Return the parts from which pickle would rebuild ``value``; ``None`` if it cannot."""
        return _pickled_state(value)

    def _state_forms(self, _value: Any, kept: list[Any], depth: int) -> list[Any]:
        """Return the forms of the parts that `_state_of` returned."""
        return [self.form(part, depth) for part in kept]

    def public(self, value: Any, depth: int, *, unknown: bool) -> dict[str, Any]:
        """Return the public attributes of an object that have plain values."""
        forms = {}
        for name, item in _public_attributes(value):
            form = self._attribute_form(name, item, depth)
            if form is not None and not self._ignored(name):
                forms[name] = form
        if not forms and unknown and type(value).__module__ not in _LOCKS:
            self.unknown.add(type_name(value))
        return {"state": digest_of_form(forms)}

    def _attribute_form(self, _name: str, value: Any, depth: int) -> Any:
        """Return the form of a public attribute with a plain value; ``None`` for another."""
        return self._plain_form(value, depth)

    def _plain_form(self, value: Any, depth: int) -> Any:
        """Return the form of a plain value or a list of them; ``None`` for other values."""
        if value is None or isinstance(value, bool):
            return {"constant": value}
        if isinstance(value, (list, tuple)):
            forms = [self._plain_form(item, depth) for item in value]
            return None if None in forms else forms
        is_enum = isinstance(value, enum.Enum)
        return self.atom(value) or (self._special_form(value, depth) if is_enum else None)


def _name_of(value: object) -> str:
    """Return a name that sorts functions and classes in the same order everywhere."""
    return str(getattr(value, "__qualname__", ""))


def unordered_digest(forms: Iterable[Any]) -> str:
    """Return the digest of forms whose order does not count."""
    return digest_of_form(sorted(map(digest_of_form, forms)))


def _text(text: str) -> Any:
    text = str.__str__(text)  # some texts, such as Dagster's environment variables, refuse str()
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON cannot hold
        return {"str": text.encode(errors="surrogatepass").hex()}
    return f"'{text}"


def holds_resource(value: Any) -> bool:
    """Return whether an object is used in a ``with`` statement, as clients and open files are."""
    return callable(getattr(type(value), "__enter__", None))


def _public_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from ((name, v) for name, v in attributes_of(value).items() if not name.startswith("_"))
    for name in _ADDRESSES:
        if isinstance(inspect.getattr_static(type(value), name, None), property | _DESCRIPTORS):
            item = read_attribute(value, name)
            # An address may be an object, for example httpx.URL.
            yield name, item if item is None or _is_plain(item) else str(item)
    if type(value).__module__.startswith("botocore."):
        yield "endpoint_url", read_attribute(read_attribute(value, "meta"), "endpoint_url")


_DESCRIPTORS = types.GetSetDescriptorType | types.MemberDescriptorType


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bytes, os.PathLike))


def read_attribute(value: Any, name: str) -> Any:
    """Return an attribute of an object; ``None`` if there is none or reading it fails."""
    try:
        return getattr(value, name)
    except Exception:  # noqa: BLE001 - user properties may raise anything
        return None


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the instance attributes of an object."""
    attributes = read_attribute(value, "__dict__")
    return dict(attributes) if isinstance(attributes, dict) else {}


def _pickled_state(value: Any) -> list[Any] | None:
    """Return the state from which pickle would rebuild ``value``; ``None`` if it cannot."""
    try:
        return state_parts(value, value.__reduce_ex__(2))
    except Exception:  # noqa: BLE001 - user objects may raise anything when pickled
        return None


def state_parts(
    value: Any, reduced: Any, name_of: Callable[[Any], Any] = function_name
) -> list[Any]:
    """Return what ``__reduce_ex__`` gives as five parts, or as the place of a global name."""
    if isinstance(reduced, str):
        module = getattr(value, "__module__", None)
        return [counted_module(module) if isinstance(module, str) else module, reduced]
    maker, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    return [name_of(maker), arguments, state, list(items or ()), list(pairs or ())]


def type_name(value: object) -> str:
    """Return the qualified name of the class of ``value``."""
    return f"{counted_module(type(value).__module__)}.{type(value).__qualname__}"
