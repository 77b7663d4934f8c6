"""Logins: arguments of fsspec's file systems for the URLs that begin with a text."""

from collections.abc import Mapping
from typing import Any

from dagster_dataops.configuration import config


def with_login(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of fsspec's file system for a URL: ``options`` over its login.

    In a chain, such as ``zip://a.png::https://host/b.zip``, each URL has its own login.
    """
    logins = config.logins()
    if not logins:
        return dict(options)
    first, *others = url.split("::")
    chained = {
        other.partition("://")[0]: login for other in others if (login := _login(other, logins))
    }
    return {**chained, **_login(first, logins), **options}


def has_login(url: str) -> bool:
    """Return whether there is a login for a URL."""
    return bool(with_login(url, {}))


def _login(url: str, logins: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the login whose text is the longest that a URL begins with."""
    fitting = [prefix for prefix in logins if _is_below(url, prefix)]
    return logins[max(fitting, key=len)] if fitting else {}


def _is_below(url: str, prefix: str) -> bool:
    """Return whether a URL is a prefix, or below it: ``https://a.b`` is none of ``https://a.bc``."""
    rest = url.removeprefix(prefix)
    return url.startswith(prefix) and (not rest or prefix.endswith("/") or rest[0] in "/?#")
