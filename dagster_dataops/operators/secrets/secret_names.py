"""Names that mark their values as secret: ``api_key``, ``hfToken``, ``PGPASSWORD``."""

import functools
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

_WORDS: Final = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"

PASSWORDS: Final = frozenset(
    {"secret", "password", "passwd", "pwd", "passphrase", "apikey", "credential", "credentials"}
)
ALWAYS: Final = PASSWORDS | {"secrets", "passwords", "passcode"}
_LOGINS: Final = frozenset({"authorization", "auth", "bearer", "cookie", "cookies", "jwt", "dsn"})
ACCESS_KEYS: Final = frozenset(
    {"api", "access", "auth", "private", "secret", "ssh", "encryption", "signing", "subscription"}
    | {"openai", "anthropic", "azure", "aws", "hf"}
)
_KEYS: Final = ACCESS_KEYS | {
    *("client", "account", "storage", "master", "consumer", "kms"),
    *("rsa", "tls", "ssl", "gpg", "pgp", "hmac", "webhook", "deploy"),
    *("aes", "fernet", "cipher", "crypto", "encrypt", "decrypt", "decryption", "symmetric"),
    *("wrapping", "blinding", "pseudonym", "pseudonymization", "pseudonymisation"),
    *("anonymization", "anonymisation", "tokenization", "tokenisation"),
}
# With one of these as its last word, a name is that of a text which is mixed into digests.
_SALTS: Final = frozenset({"salt", "salts", "pepper", "peppers"})
ACCESS_TOKENS: Final = frozenset(
    {"api", "access", "auth", "bearer", "refresh", "session", "security", "sas"}
    | {"hf", "huggingface", "github", "gitlab", "openai", "slack"}
)
_GLUED_TOKENS: Final = ACCESS_TOKENS | {"user", "bot", "oauth", "login", "id", "csrf", "gh", "npm"}
# A token of a text, and no key: one of these words is in its name.
_TEXT_TOKENS: Final = frozenset(
    {"max", "min", "num", "n", "count", "limit", "per", "total", "new", "stop", "special"}
    | {"eos", "bos", "pad", "sep", "cls", "mask", "unk", "start", "end", "input", "output"}
    | {"prompt", "completion", "image", "audio", "video", "think", "thinking", "reasoning"}
    | {"separator", "begin", "doc", "document", "chunk", "overlap", "context", "window"}
    | {"prefix", "suffix", "middle", "role", "system", "added", "extra", "vocab", "mean"}
    | {"reserved", "budget", "cached", "fim", "boundary", "newline", "blank"}
)
STORES: Final = frozenset({"database", "db", "connection", "conn", "redis", "mongo", "postgres"})
_MORE_STORES: Final = STORES | {
    *("mysql", "pg", "postgresql", "sql", "mssql", "oracle", "ssh", "ldap", "amqp", "rabbitmq"),
    *("mongodb", "mail", "root", "http", "https", "sudo", "vault", "jdbc", "odbc", "webhook"),
}
USERS: Final = frozenset({"user", "admin", "login", "client", "proxy", "smtp", "ftp"})
# The last word of a name, and the words before it that make the name secret.
_SECRET_BESIDE: Final[Mapping[str, AbstractSet[str]]] = {
    **dict.fromkeys(("key", "keys"), _KEYS),
    **dict.fromkeys(("url", "uri", "string", "str"), STORES | {"webhook", "jdbc", "odbc", "amqp"}),
    "pass": _MORE_STORES | USERS,
}
# Words that are one with the word before them, as in names of environment variables.
_GLUED: Final[Mapping[str, AbstractSet[str]]] = {
    **dict.fromkeys(("key", "keys"), _KEYS),
    **dict.fromkeys(("token", "tokens"), _GLUED_TOKENS),
    **dict.fromkeys(("pass", "pwd", "auth"), _MORE_STORES | USERS),
    **dict.fromkeys(("url", "uri", "dsn"), _MORE_STORES),
}
_GLUED_ALWAYS: Final = (
    *("password", "passwords", "passwd", "passphrase", "passcode", "apikey", "apikeys", "secret"),
    *("secrets", "secretkey", "accesskey", "privatekey", "credentials", "authorization"),
)


@functools.lru_cache(maxsize=4096)  # a thousand operators have the names of a few
def is_secret(name: str) -> bool:
    """Return whether a name marks its value as secret."""
    words = words_of(name)
    if not words or not ALWAYS.isdisjoint(words) or not _LOGINS.isdisjoint(words):
        return bool(words)
    if _ends_in_salt(words):
        return True
    if words[-1] in {"token", "tokens"}:
        return _TEXT_TOKENS.isdisjoint(words)
    if not _SECRET_BESIDE.get(words[-1], frozenset()).isdisjoint(words):
        return True
    return any(map(_is_glued, _spelled(words)))


def names_password(name: str) -> bool:
    """Return whether a name is that of a password, or salt, which may be a number."""
    words = words_of(name)
    if not ALWAYS.isdisjoint(words) or any(word.endswith(_GLUED_ALWAYS) for word in words):
        return True
    return _ends_in_salt(words)


def words_of(name: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return [word.lower() for word in re.findall(_WORDS, name)]


def _ends_in_salt(words: list[str]) -> bool:
    """Return whether a name is that of a salt: ``hash_salt``, but not ``salt_rounds``."""
    return bool(words) and words[-1] in _SALTS


def _spelled(words: list[str]) -> Iterator[str]:
    """Yield the words, and all of them as one: ``PgPass``, ``DB_PASS_WORD``."""
    yield from words
    if len(words) > 1:
        yield "".join(words)


def _is_glued(word: str) -> bool:
    if word.endswith(_GLUED_ALWAYS):
        return True
    pairs = (
        (word.removesuffix(tail), heads) for tail, heads in _GLUED.items() if word.endswith(tail)
    )
    return any(head in heads for head, heads in pairs)
