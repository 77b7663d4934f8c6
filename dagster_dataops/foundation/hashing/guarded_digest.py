"""Digests of hidden values, from which a value is expensive to guess.

A hidden value may be short, and a manifest is read by many. All that a run on another machine
knows is the value itself, so there is no secret key that every machine of a root has. Instead each
guess is expensive: the digest takes a tenth of a second (PBKDF2 with the number of rounds that
OWASP recommends; every build of Python has it). The digest is mixed with those of the other options
before it is stored. A process computes it once for each hidden value.
"""

from functools import lru_cache
from typing import Any, Final

import orjson

_ROUNDS: Final = 600_000


def guarded_digest(name: str, form: Any) -> str:
    """Return the digest of a hidden value, equal in every process and on every machine.

    Args:
        name: The name of the option, key or attribute, so that one table of guesses does not serve
            for all names.
        form: The JSON form of the value.
    """
    return _stretched(orjson.dumps(form, option=orjson.OPT_SORT_KEYS), name)


@lru_cache(maxsize=1024)
def _stretched(text: bytes, name: str) -> str:
    import hashlib  # slow to import

    salt = f"dagster-dataops identity of {name}".encode(errors="surrogatepass")
    return hashlib.pbkdf2_hmac("sha256", text, salt, _ROUNDS).hex()
