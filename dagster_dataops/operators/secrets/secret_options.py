"""Detect secret options, and show values without secrets.

The words in a name decide; in doubt a value is hidden. Whether an option counts for the identity of
an operator is another question, which `endpoint_credentials` answers.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import ModuleType
from typing import Any, Final

from dagster_dataops.operators.secrets.secret_names import (
    is_secret,
    names_password,
)
from dagster_dataops.operators.secrets.secret_texts import (
    HIDDEN,
    Secrets,
    password_of,
    secrets_in,
    without_logins,
)

_NAME: Final = r"-{0,2}[\w.-]{1,64}"  # of a header, an option or a flag
_MAX_DEPTH: Final = 20
_MAX_OBJECTS: Final = 10_000  # the maximum number of inspected containers and objects
_MAX_TEXTS: Final = 100_000  # texts of containers that are searched for secrets
_LONGEST_SEARCHED: Final = 1 << 16  # characters of such a text


def is_hidden(name: str, value: Any) -> bool:
    """Return whether a value is hidden by its name, or is a text with a login."""
    if is_secret(name):
        return redacted(name, value) is HIDDEN
    return type(value) is str and without_logins(value) != value


def redacted(name: str, value: Any, depth: int = 0) -> Any:
    """Return ``value`` with its secrets replaced; the same object if it has none.

    Args:
        name: The name of the option, or the key or attribute that holds the value.
        value: Any value. Containers and dataclasses are copied only to replace something.
        depth: The nesting depth.
    """
    if _must_hide(name, value):
        return HIDDEN
    if isinstance(value, str):
        text = without_logins(str.__str__(value))
        return value if text == value else text
    if depth >= _MAX_DEPTH:
        return value
    return _redacted_inside(value, depth + 1)


def shown(name: str, value: Any) -> str:
    """Return the ``repr`` of an option without its secrets."""
    try:
        text = repr(redacted(name, value))
    except Exception:  # noqa: BLE001 - user objects may raise anything
        text = f"<{type(value).__qualname__}>"
    return without_secrets(text, {name: value})


def holds_secret(name: str, value: Any) -> bool:
    """Return whether an option contains a secret."""
    return redacted(name, value) is not value or any(_secrets(name, value, set()))


def secrets_of(options: Mapping[str, Any]) -> Secrets:
    """Return the secrets of options."""
    return Secrets(
        secret for name, value in options.items() for secret in _secrets(name, value, set())
    )


def without_secrets(text: str, options: Mapping[str, Any]) -> str:
    """Return ``text`` with all occurrences of the secrets of ``options`` replaced."""
    return secrets_of(options).hide(text)


def _must_hide(name: str, value: Any) -> bool:
    if callable(getattr(value, "get_secret_value", None)):  # pydantic's
        return True
    if value is None or isinstance(value, (bool, type)) or not is_secret(name):
        return False
    # A token count or a cookie number is not a secret.
    return not isinstance(value, (int, float)) or names_password(name)


def _redacted_inside(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        redacted_items = {key: redacted(_key(key), item, depth) for key, item in value.items()}
        return (
            value
            if all(redacted_items[key] is value[key] for key in redacted_items)
            else redacted_items
        )
    if isinstance(value, (list, tuple)):
        return _redacted_items(value, depth)
    if isinstance(value, AbstractSet):
        items = [redacted("", item, depth) for item in value]
        return value if set(map(id, items)) == set(map(id, value)) else set(items)
    if isinstance(value, partial):
        return _redacted_partial(value, depth)
    return value


def _redacted_items(value: Any, depth: int) -> Any:
    if isinstance(value, list) and _are_pairs(value):
        redacted_pairs = [list(_redacted_items(tuple(pair), depth)) for pair in value]
        return value if redacted_pairs == value else redacted_pairs
    items = [redacted(name, item, depth) for name, item in _named_items(value)]
    same = all(item is other for item, other in zip(items, value, strict=True))
    if same:
        return value
    if isinstance(value, list):
        return items
    make: Callable[[Sequence[Any]], Any] = getattr(type(value), "_make", tuple)
    return make(items)


def _redacted_partial(value: "partial[Any]", depth: int) -> Any:
    args, keywords = _redacted_items(value.args, depth), _redacted_inside(value.keywords, depth)
    same = args is value.args and keywords is value.keywords
    return value if same else partial(value.func, *args, **keywords)


def _named_items(value: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the items of a list or tuple with their names.

    Fields of a named tuple have their names. The second item of a pair, a tuple, has the first as
    its name if that can be the name of a header or option; a list of two texts is no pair. An item
    behind a flag has the name of the flag.
    """
    names = getattr(value, "_fields", None) if isinstance(value, tuple) else None
    if names is not None and len(names) == len(value):
        yield from ((_of_login(name, item), item) for name, item in zip(names, value, strict=True))
        return
    before = ""
    is_pair = isinstance(value, tuple) and len(value) == 2
    for item in value:
        yield before, item
        before = ""
        if isinstance(item, (str, bytes)):
            text = _key(item)
            is_flag = text.startswith("-") and re.fullmatch(_NAME, text) is not None
            if is_flag or (is_pair and re.fullmatch(_NAME, text) is not None):
                before = text.lstrip("-")


def _are_pairs(value: list[Any]) -> bool:
    """Return whether a list holds nothing but lists of a name and a value, as YAML has pairs."""
    return bool(value) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in value
    )


def _of_login(field: str, value: object) -> str:
    """Return the name of a field of a named tuple; that of a parsed URL may hold a login."""
    return "password" if field == "netloc" and "@" in str(value) else field


def _key(key: object) -> str:
    """Return the name that a key of a mapping is; that of several parts is all of them."""
    if isinstance(key, Enum):
        return f"{key.name}_{_key(key.value)}"
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, bytes):
        return key.decode(errors="replace")
    return "_".join(map(_key, key)) if isinstance(key, tuple) else ""


def _secrets(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """Yield the secret texts in a value."""
    if callable(getattr(value, "get_secret_value", None)):
        yield from _texts(value.get_secret_value(), seen)
    elif _must_hide(name, value):
        yield from _texts(value, seen)
    elif isinstance(value, str):
        yield from secrets_in(str.__str__(value)[:_LONGEST_SEARCHED])
    elif isinstance(value, bytes):
        yield from secrets_in(value[:_LONGEST_SEARCHED].decode(errors="replace"))
    else:
        for count, (key, item) in enumerate(_parts(value, seen)):
            if count > _MAX_TEXTS:
                return
            yield from _secrets(key, item, seen)


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield all texts in a secret value."""
    variable = getattr(value, "env_var_name", None)
    if isinstance(variable, str):  # Dagster's EnvVar
        yield os.environ.get(variable, "")
    elif isinstance(value, (str, bytes)):
        text = value.decode(errors="replace") if isinstance(value, bytes) else str.__str__(value)
        yield text
        yield from secrets_in(text[:_LONGEST_SEARCHED])
        if "@" in text and "://" not in text:
            yield from password_of(text.rpartition("@")[0])
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif callable(getattr(value, "get_secret_value", None)):
        yield from _texts(value.get_secret_value(), seen)
    for _, item in _parts(value, seen):
        yield from _texts(item, seen)


def _parts(value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a container or object with their names, each object once."""
    atom = value is None or isinstance(value, (str, bytes, int, float, type, ModuleType))
    if atom or id(value) in seen or len(seen) > _MAX_OBJECTS:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        yield from ((_key(key), item) for key, item in value.items())
    elif isinstance(value, list) and _are_pairs(value):
        yield from (("", tuple(pair)) for pair in value)
    elif isinstance(value, (list, tuple)):
        yield from _named_items(value)
    elif isinstance(value, AbstractSet):
        yield from (("", item) for item in value)
    elif isinstance(value, partial):
        yield from (("", value.args), ("", value.keywords))
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, also those in slots."""
    if is_dataclass(value):
        yield from ((field.name, getattr(value, field.name, None)) for field in fields(value))
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        yield from list(attributes.items())
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if isinstance(name, str) and not name.startswith("__"):
                yield name, getattr(value, name, None)
