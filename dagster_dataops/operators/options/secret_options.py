"""Detect secret options, and show values without secrets.

The words in a name decide; in doubt a value is hidden. Whether an option counts for the identity of
an operator is another question, which `endpoint_credentials` answers.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, Final

HIDDEN: Final = "(hidden)"
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_PASSWORDS: Final = frozenset(
    {"secret", "password", "passwd", "pwd", "passphrase", "apikey", "credential", "credentials"}
)
_ALWAYS: Final = _PASSWORDS | {"secrets", "passwords", "passcode"}
_LOGINS: Final = frozenset({"authorization", "auth", "bearer", "cookie", "cookies", "jwt", "dsn"})
_ACCESS_KEYS: Final = frozenset(
    {"api", "access", "auth", "private", "secret", "ssh", "encryption", "signing", "subscription"}
    | {"openai", "anthropic", "azure", "aws", "hf"}
)
_KEYS: Final = _ACCESS_KEYS | {"client", "account", "storage", "master", "consumer", "kms"}
_ACCESS_TOKENS: Final = frozenset(
    {"api", "access", "auth", "bearer", "refresh", "session", "security", "sas"}
    | {"hf", "huggingface", "github", "gitlab", "openai", "slack"}
)
_TEXT_TOKENS: Final = frozenset(
    {"max", "min", "num", "n", "count", "limit", "per", "total", "new", "stop", "special"}
    | {"eos", "bos", "pad", "sep", "cls", "mask", "unk", "start", "end", "input", "output"}
    | {"prompt", "completion"}
)
_STORES: Final = frozenset({"database", "db", "connection", "conn", "redis", "mongo", "postgres"})
_USERS: Final = frozenset({"user", "admin", "login", "client", "proxy", "smtp", "ftp"})
# The last word of a name, and the words before it that make the name secret.
_SECRET_BESIDE: Final[Mapping[str, AbstractSet[str]]] = {
    **dict.fromkeys(("key", "keys"), _KEYS),
    **dict.fromkeys(("url", "uri", "string", "str"), _STORES),
    "pass": _STORES | _USERS,
}

_LOGIN_IN_URL: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#'\"]+@", re.IGNORECASE)
_IN_QUERY: Final = re.compile(r"([?&]([\w.-]+)=)[^\s&#'\"]+")
_IN_YAML: Final = re.compile(r"(([\w.-]+)[\"']?\s*:\s+)(?![\[{|>&*!\s]|\{\{)[^,}\]\n]+")
_IN_HEADER: Final = re.compile(r"\b(Bearer|Basic) [\w.~+/=-]{6,}")
_PLAIN: Final = re.compile(r"[^:= ]*")  # each of the three has one of these characters
_MIN_LENGTH: Final = 4  # characters; shorter texts also occur by chance
_MAX_DEPTH: Final = 20
_MAX_OBJECTS: Final = 10_000  # the maximum number of inspected containers and objects


@functools.lru_cache(maxsize=1024)  # a thousand operators have the names of a few
def is_secret(name: str) -> bool:
    """Return whether a name marks its value as secret: ``api_key``, ``hfToken``."""
    words = _words(name)
    if not words or not _ALWAYS.isdisjoint(words) or not _LOGINS.isdisjoint(words):
        return bool(words)
    if words[-1] in {"token", "tokens"}:
        return _TEXT_TOKENS.isdisjoint(words)
    return not _SECRET_BESIDE.get(words[-1], frozenset()).isdisjoint(words)


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


def without_secrets(text: str, options: Mapping[str, Any]) -> str:
    """Return ``text`` with all occurrences of the secrets of ``options`` replaced."""
    found = {one for name, value in options.items() for one in _secrets(name, value, set())}
    for secret in sorted(found, key=len, reverse=True):
        for written in (secret, repr(secret)[1:-1]):
            text = text.replace(written, HIDDEN)
    return without_logins(text)


def without_logins(text: str) -> str:
    """Return ``text`` without logins in URLs, keys in query strings and tokens in HTTP headers."""
    if _PLAIN.fullmatch(text):
        return text
    text = _LOGIN_IN_URL.sub(rf"\g<1>{HIDDEN}@", text)
    text = _IN_QUERY.sub(lambda m: m[1] + HIDDEN if is_secret(m[2]) else m[0], text)
    return _IN_HEADER.sub(rf"\g<1> {HIDDEN}", text)


def without_named(text: str) -> str:
    """Return an excerpt of a YAML file without the values of secret keys."""
    return _IN_YAML.sub(lambda m: m[1] + HIDDEN if is_secret(m[2]) else m[0], without_logins(text))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _must_hide(name: str, value: Any) -> bool:
    if callable(getattr(value, "get_secret_value", None)):  # pydantic's
        return True
    if value is None or isinstance(value, (bool, type)) or not is_secret(name):
        return False
    # A token count or a cookie number is not a secret.
    return not isinstance(value, (int, float)) or not _ALWAYS.isdisjoint(_words(name))


def _redacted_inside(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        made = {key: redacted(_key(key), item, depth) for key, item in value.items()}
        return value if all(made[key] is value[key] for key in made) else made
    if isinstance(value, (list, tuple)):
        return _redacted_items(value, depth)
    if isinstance(value, AbstractSet):
        items = [redacted("", item, depth) for item in value]
        return value if set(map(id, items)) == set(map(id, value)) else set(items)
    return value


def _redacted_items(value: Any, depth: int) -> Any:
    if len(value) == 2 and isinstance(value[0], str) and _must_hide(value[0], value[1]):
        return type(value)((value[0], HIDDEN))  # an HTTP header as a pair
    items = [redacted("", item, depth) for item in value]
    same = all(one is other for one, other in zip(items, value, strict=True))
    return value if same else items if isinstance(value, list) else tuple(items)


def _key(key: object) -> str:
    return key if isinstance(key, str) else ""


def _secrets(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """Yield the secret texts in a value."""
    if callable(getattr(value, "get_secret_value", None)):
        yield from _texts(value.get_secret_value(), seen)
    elif _must_hide(name, value):
        yield from _texts(value, seen)
    else:
        for key, item in _parts(value, seen):
            yield from _secrets(key, item, seen)


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield all texts in a secret value."""
    if isinstance(value, (str, bytes)):
        text = value.decode(errors="replace") if isinstance(value, bytes) else str.__str__(value)
        if len(text) >= _MIN_LENGTH:
            yield text
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
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        yield value[0], value[1]
    elif isinstance(value, (list, tuple, AbstractSet)):
        yield from (("", item) for item in value)
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(value):  # also if it has slots
        yield from ((field.name, getattr(value, field.name, None)) for field in fields(value))
    elif isinstance(getattr(value, "__dict__", None), dict):
        yield from vars(value).items()
