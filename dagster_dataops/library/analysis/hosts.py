"""The canonical form of hosts and URLs, in which lists and pages can be compared."""

from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import unquote, urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ftp": 21}


def canonical_host(url: str) -> str:
    """Return the host of a URL, or of a host alone: in lower case, in ASCII, without a last dot.

    Scheme, user, port and path do not count. International names are in their form of ASCII
    (``xn--``), by UTS 46. Needs the package idna.
    """
    text = url.strip().replace("\\", "/")  # as browsers
    try:
        return str(IPv6Address(text))
    except ValueError:  # no address alone
        pass
    try:
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:  # no URL
        host = text.lower()
    if ":" in host:
        return _address(host)
    host = unquote(host).lower() if "%" in host else host
    return _in_ascii(host.rstrip("."))


def _address(host: str) -> str:
    try:
        return str(IPv6Address(host))
    except ValueError:
        return host


@lru_cache(maxsize=1 << 14)
def _in_ascii(host: str) -> str:
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii").rstrip(".")
    except idna.IDNAError:  # no name of a host
        return host


def canonical_url(url: str) -> str:
    """Return a URL with its canonical host, without user, default port and fragment."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # no URL
        return text
    if not parts.hostname:
        return text
    scheme = parts.scheme.lower()
    place = canonical_host(text)
    place = f"[{place}]" if ":" in place else place
    if port is not None and port != _DEFAULT_PORTS.get(scheme):
        place += f":{port}"
    return f"{scheme}://{place}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
