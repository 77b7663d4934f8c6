"""Find e-mail and IP addresses in a text."""

import ipaddress
import re
import string
from typing import Final

from dagster_dataops.library.analysis.text_spans import Spans

_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_LOCAL: Final = f"{_ALPHANUMERIC}!#$%&'*+/=?^_`{{|}}~-."
_LOCAL_START: Final = re.compile(r"\b[^.]")
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
_LABEL: Final = "[A-Za-z0-9]++(?:-++[A-Za-z0-9]++)*+"
_DOMAIN: Final = re.compile(
    rf"{_LABEL}(?:\.{_LABEL})++|\[(?:{_OCTET}\.){{3}}(?:{_OCTET}|[A-Za-z0-9-]*[A-Za-z0-9]:)\]"
)
_WIDE_LOCAL: Final = f"{_ALPHANUMERIC}.-+_"
_WIDE_DOMAIN: Final = re.compile(r"[a-z0-9.\-+_]+\.[a-z]+")

# Part of every IPv4 address. It begins with a character that is found fast.
_MAYBE_IPV4: Final = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_IPV4: Final = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}")
_MAYBE_IPV6: Final = re.compile(r":[\da-fA-F]{1,4}:[\da-fA-F]{1,4}:")
# Data-Juicer's octets have no leading zeros, so 10.0.0.05 is found up to 10.0.0.0.
_STRICT: Final = "(?:1[0-9][0-9]|2[0-4][0-9]|25[0-5]|[1-9][0-9]|[0-9])"
_ANY_IP: Final = re.compile(
    rf"(?:{_STRICT}\.){{3}}{_STRICT}|(?:[\da-fA-F]{{1,4}}:){{7}}[\da-fA-F]{{1,4}}"
)


def emails(text: str) -> Spans:
    """Yield e-mail addresses as datatrove finds them: ASCII, with a domain or an IP."""
    place, at = 0, text.find("@")
    while at >= 0:
        start = _local_start(text, place, at)
        domain = _DOMAIN.match(text, at + 1) if start >= 0 else None
        place = domain.end() if domain else at + 1
        if domain:
            yield start, place
        at = text.find("@", place)


def _local_start(text: str, place: int, at: int) -> int:
    """Return the start of the local part that ends at ``at``, ``place`` or later; -1 if none."""
    before = text[place:at]
    start = at - len(before) + len(before.rstrip(_LOCAL))
    dots = text.rfind("..", start, at)
    start = dots + 2 if dots >= 0 else start
    if start >= at or text[at - 1] == ".":
        return -1
    match = _LOCAL_START.search(text, start, at)
    return match.start() if match else -1


def wide_emails(text: str) -> Spans:
    """Yield e-mail addresses as Data-Juicer finds them: letters of both cases, digits, ``.-+_``."""
    place, at = 0, text.find("@")
    while at >= 0:
        before = text[place:at]
        start = place + len(before.rstrip(_WIDE_LOCAL))
        domain = _WIDE_DOMAIN.match(text, at + 1) if start < at else None
        place = domain.end() if domain else at + 1
        if domain:
            yield start, place
        at = text.find("@", place)


def public_ips(text: str) -> Spans:
    """Yield IPv4 addresses of the public internet."""
    return (span for span in ips(text) if ipaddress.ip_address(text[slice(*span)]).is_global)


def ips(text: str) -> Spans:
    """Yield IPv4 addresses."""
    place = 0
    maybe = _MAYBE_IPV4.search(text)
    while maybe:
        dot = maybe.start()
        starts = range(max(place, dot - 3), dot)
        match = next(filter(None, (_IPV4.match(text, start) for start in starts)), None)
        if match and _is_ip(match[0]):
            yield match.span()
        place = match.end() if match else place
        maybe = _MAYBE_IPV4.search(text, max(place, dot + 1))


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:  # a leading zero
        return False
    return True


def wide_ips(text: str) -> Spans:
    """Yield IPv4 and complete IPv6 addresses as Data-Juicer finds them, also inside numbers."""
    if _MAYBE_IPV4.search(text) is None and _MAYBE_IPV6.search(text) is None:
        return
    for match in _ANY_IP.finditer(text):
        yield match.span()
