"""Addresses of servers: their canonical form, and the addresses of their endpoints."""

from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from dagster_dataops.operators.secrets.secret_names import is_secret

_PORTS: Final = {"http": 80, "https": 443}
_SECRETS: Final = frozenset({"key", "code", "sig", "signature"})  # beside those by `is_secret`


def canonical_address(address: str) -> str:
    """Return an address so that equal ones are equal texts. It has no secrets.

    Scheme and host are in lower case, the usual port, a slash at the end and the fragment are left
    out, and so are the login and the secret fields of the query; the others are sorted.

    Raises:
        ValueError: It is no address.
    """
    parts = urlsplit(address.strip())
    fields = parse_qsl(parts.query, keep_blank_values=True)
    shown = [
        (name, value)
        for name, value in fields
        if name.lower() not in _SECRETS and not is_secret(name)
    ]
    scheme = parts.scheme.lower()
    path = parts.path.rstrip("/")
    return urlunsplit((scheme, _host(address), path, urlencode(sorted(shown)), ""))


def endpoint_address(address: str, path: str) -> str:
    """Return the address of an endpoint: the path comes before the query."""
    parts = urlsplit(address)
    _, mark, query = path.partition("?")
    joined = "&".join(part for part in (parts.query, query) if part)
    whole = parts.path.rstrip("/") + (path[: -len(query) - 1] if mark else path)
    return urlunsplit((parts.scheme, parts.netloc, whole, joined, ""))


def shown_address(address: str) -> str:
    """Return an address for a message: without login, query and fragment, which may be secret."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def same_server(before_url: str, other: str) -> bool:
    """Return whether credentials for an address may be sent to the other one.

    The host and the port must be equal. From ``http`` to ``https`` of one host, both with their
    usual ports, is allowed.

    Raises:
        ValueError: One is no address.
    """
    before, after = urlsplit(before_url).scheme.lower(), urlsplit(other).scheme.lower()
    if _host(before_url) != _host(other):
        return False
    return before == after or (
        before == "http" and after == "https" and ":" not in _port(before_url)
    )


def _host(address: str) -> str:
    """Return host and port; the host in lower case and ASCII, the usual port left out."""
    parts = urlsplit(address.strip())
    host = (parts.hostname or "").rstrip(".")
    if not host:
        msg = "it names no host"
        raise ValueError(msg)
    if not host.isascii():
        host = host.encode("idna").decode()
    host = f"[{host}]" if ":" in host else host
    return host + _port(address)


def _port(address: str) -> str:
    """Return the port with a colon; empty for the usual one."""
    parts = urlsplit(address.strip())
    usual = _PORTS.get(parts.scheme.lower())
    return "" if parts.port in {None, usual} else f":{parts.port}"
