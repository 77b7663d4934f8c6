"""Names of options that change no result: credentials of an endpoint, and limits of calls.

Whether an option counts and whether it is shown are two questions. A hidden option counts, unless
its name is listed here: a key of an encryption, a signing key, a password and a salt change the
result of an operator, and two of them never share a checkpoint. In doubt an option counts.
"""

import functools
import re
from typing import Final

_WORDS: Final = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"

# The last words of a name, without the ``s`` of a plural.
_CREDENTIALS: Final = frozenset(
    {"access key", "access key id", "access token", "api key", "api secret", "api token", "apikey"}
    | {"auth key", "auth token", "authorization", "basic auth", "bearer token", "client secret"}
    | {"credential", "http auth", "jwt", "oauth token", "proxy auth", "refresh token", "sas token"}
    | {"secret access key", "security token", "session token", "subscription key"}
)
_PROVIDERS: Final = frozenset(
    {"anthropic", "aws", "azure", "cohere", "deepseek", "gemini", "github", "gitlab", "groq", "hf"}
    | {"huggingface", "mistral", "nvidia", "openai", "openrouter", "replicate", "slack", "together"}
)
# Words of a name of a mapping that tell a client, a server or a process how to work. In other
# mappings, such as a table of columns to rename, ``api_key`` is a name like any other.
_HOLDERS: Final = frozenset(
    {"account", "api", "arg", "auth", "backend", "cfg", "client", "conf", "config", "configuration"}
    | {"conn", "connect", "connection", "credential", "embedder", "endpoint", "env", "environ"}
    | {"environment", "extra", "filesystem", "fs", "grader", "header", "host", "http", "judge"}
    | {"kwarg", "llm", "login", "model", "opt", "option", "param", "parameter", "provider"}
    | {"remote", "request", "rest", "s3", "server", "service", "session", "setting", "storage"}
    | {"store", "vlm", "argument", "azure", "aws", "gcs", "openai", "anthropic", "hf"}
    | {"huggingface", "variable"}
)
_LONGEST: Final = 3  # words of a credential
_LIMITS: Final = (
    r"((request|connect|connection|read|write|http|api|call)_)?timeout(_(s|secs?|seconds|ms))?"
    r"|((max|num)_)?retries|retry_delay|(retry_)?backoff"
)


@functools.lru_cache(maxsize=1024)  # a thousand operators have the names of a few
def is_endpoint_credential(name: str) -> bool:
    """Return whether a name marks a credential that only gives access: ``api_key``, ``hfToken``."""
    return bool(_credential_in(name))


@functools.lru_cache(maxsize=1024)
def is_inner_credential(name: str) -> bool:
    """Return whether a key or attribute inside an option is such a credential.

    One word alone is not enough here: a table of texts may have an entry ``credentials``.
    """
    credential = _credential_in(name)
    return " " in credential or name.lower() in {"authorization", "apikey"}


@functools.lru_cache(maxsize=1024)
def holds_credentials(name: str) -> bool:
    """Return whether a mapping with this name may have credentials as entries: ``headers``."""
    words = (word.lower().removesuffix("s") for word in re.findall(_WORDS, name))
    return not _HOLDERS.isdisjoint(words)


def is_operational_option(name: str, value: object) -> bool:
    """Return whether an option is a credential, or limits the time or number of attempts.

    A boolean is neither: ``hide_api_key=True``.
    """
    if isinstance(value, bool):
        return False
    number = value is None or isinstance(value, (int, float))
    if re.fullmatch(_LIMITS, name):
        return number or isinstance(value, tuple)
    return is_endpoint_credential(name) and not isinstance(value, (int, float))


def _credential_in(name: str) -> str:
    """Return the last words of a name that make it a credential; empty if there are none."""
    words = [word.lower() for word in re.findall(_WORDS, name)]
    if not words:
        return ""
    words[-1] = words[-1].removesuffix("s")
    if words[-1] in {"key", "token"} and len(words) > 1 and words[-2] in _PROVIDERS:
        return " ".join(words[-2:])
    ends = (" ".join(words[-count:]) for count in range(1, min(_LONGEST, len(words)) + 1))
    return next((end for end in ends if end in _CREDENTIALS), "")
