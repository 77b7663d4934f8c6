"""Which options must not be shown: what their names say. Values are never looked at."""

import re
from typing import Final

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALWAYS: Final = frozenset(
    {"secret", "secrets", "password", "passwords", "passwd", "pwd", "passphrase", "apikey"}
    | {"credential", "credentials"}
)
_KEYS: Final = frozenset(  # of what a key is none that a record has
    {"api", "access", "auth", "private", "ssh", "encryption", "signing", "client"}
    | {"openai", "anthropic", "azure", "aws", "hf"}
)
_COUNTED: Final = frozenset({"max", "min", "num", "n", "count", "limit", "per", "total"})
HIDDEN: Final = "(hidden)"


def is_secret(name: str) -> bool:
    """Whether an option's name says that its value must not be shown: ``api_key``, ``hfToken``."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if _ALWAYS.intersection(words):
        return True
    if words and words[-1] in {"token", "bearer"}:
        return not _COUNTED.intersection(words)
    return bool(words) and words[-1] == "key" and bool(_KEYS.intersection(words))
