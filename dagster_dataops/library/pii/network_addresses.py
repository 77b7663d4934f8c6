"""Find e-mail and IP addresses of all scripts, and tell addresses from versions and code."""

import ipaddress
import re
import string
from typing import Final

from dagster_dataops.library.analysis.text_spans import Spans

# Written without spaces, so that words before and after an address touch it.
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNSPACED_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")
_LOCAL: Final = re.compile(rf"[\w.+'&%~!-](?<![{_UNSPACED}])|[{_UNSPACED}]")
_ASCII_LOCAL: Final = f"{string.ascii_letters}{string.digits}_.+'&%~!-"
_LEADING: Final = ".+'&%~!-"
_LONGEST_LOCAL: Final = 64
_LABEL: Final = r"[^\W_](?:[^\W_]|-(?=[^\W_]|-)|[\u0300-\u036f\u0900-\u0dff]){0,62}"
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:[.\u3002\uff0e]{_LABEL}){{1,10}}")
_LITERAL: Final = re.compile(r"\[(?:IPv6:)?([0-9A-Fa-f:.]{2,45})\]")
_POD: Final = re.compile("<(?:gt|lt|verbar|sol|amp|[0-9]+)>")  # after E, in the documents of Perl
_ASCII_START: Final = re.compile(r"[a-z]+", re.IGNORECASE)

# Parts of every address. They begin with a character that is found fast.
_MAYBE_IPV4: Final = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_MAYBE_IPV6: Final = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV4: Final = re.compile(
    r"(?<![0-9A-Za-z_.])(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    r"(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}(?![0-9A-Za-z_]|\.[0-9]|-[0-9A-Za-z])"
)
_VERSION_BEFORE: Final = re.compile(
    r"(?:[A-Za-z][-/]|[<>=~^!]=|\^|~>?|[<>]|\b(?:v|rv|\w*versions?|versionen|versión|versione|versão|версия"
    r"|ver|vers|release[ds]?|rel|build|kernel|firmware|driver|update[ds]?|upgrade[ds]?|patch|revision"
    r"|rev|firefox|chrome|chromium|safari|linux|windows|android|ios|since|before|until|sections?|chapters?|clauses?|§|oid|asn)"
    r"_{0,2}[\"']?\s?[.:#=]?\s{0,2}(?:is\s|to\s|from\s|number\s|no\.?\s)?|版本号?\s?:?|バージョン\s?:?|버전\s?:?)"
    r"[\"'(=v]{0,2}\s?\Z",
    re.IGNORECASE,
)
_VERSION_AFTER: Final = re.compile(
    r"\s?\(?(?:or|and)\s(?:later|newer|above|higher|older|earlier)|\s(?:release|版本|build)",
    re.IGNORECASE,
)
_ADDRESS_NEAR: Final = re.compile(
    r"\b(?:ips?|ipv4|inet|addr(?:ess(?:es)?)?|adress[e]?|direcci[oó]n|indirizzo|endereço|адрес\w*"
    r"|hosts?|servers?|serveur|servidor|dns|nameservers?|resolvers?|gateway|routers?|proxy|clients?"
    r"|peers?|ping|ssh|https?|ftp|tcp|udp|connect(?:ed|s|ing)?|listen(?:s|ing)?|bind|subnet|netmask"
    r"|network|remote|login|traceroute|whois|curl|telnet)\b|://|@|地址|服务器|アドレス|サーバ|주소|서버",
    re.IGNORECASE,
)
_PORT_AFTER: Final = re.compile(r":[0-9]{2,5}\b|/[0-9]{1,2}\b")
_PUBLIC_IPV6: Final = ipaddress.IPv6Network("2000::/3")  # RFC 4291; no other is assigned
_IPV4_VERSION: Final = 4
_NEAR: Final = 48  # characters
_LARGEST_FIRST_OF_VERSION: Final = 9
_LARGEST_OF_SECTION: Final = 31  # four numbers up to it may be those of a section, too

_IPV6: Final = re.compile(
    r"(?<![0-9A-Za-z_:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:[0-9A-Fa-f]{1,4}|[0-9.]{7,15})?"
    r"(?:%[0-9A-Za-z_.-]{1,15})?(?![0-9A-Za-z_:]|\.[0-9])"
)


def emails(text: str) -> Spans:
    """Yield e-mail addresses: of all scripts and cases, without marks and markup around them."""
    place, at = 0, text.find("@")
    while at >= 0:
        start = _local_start(text, place, at)
        end = _domain_end(text, at + 1) if start < at else at
        if end > at:
            yield start, end
        place = max(end, at + 1)
        at = text.find("@", place)


def _local_start(text: str, place: int, at: int) -> int:
    """Return the start of the local part that ends at ``at``; ``at`` if there is none."""
    first = max(place, at - _LONGEST_LOCAL)
    before = text[first:at]
    start = at
    if before.isascii():
        start = first + len(before.rstrip(_ASCII_LOCAL))
        first = start
    unspaced = at > first and _UNSPACED_CHARACTER.match(text[at - 1]) is not None
    while start > first and _LOCAL.match(text[start - 1]):
        character = text[start - 1]
        of_unspaced = _UNSPACED_CHARACTER.match(character) is not None
        if of_unspaced != unspaced and character not in _LEADING and not character.isdigit():
            break
        start -= 1
    while start < at and text[start] in _LEADING:
        start += 1
    dots = text.rfind("..", start, at)
    start = dots + 2 if dots >= 0 else start
    return at if text[at - 1 : at] in {"", "."} else start


def _domain_end(text: str, place: int) -> int:
    """Return the end of the domain that begins at a position, or -1."""
    if literal := _LITERAL.match(text, place):
        return literal.end() if _address(literal[1]) is not None else -1
    match = _DOMAIN.match(text, place)
    if match is None:
        return -1
    end = match.end()
    if text[end - 1] == "E" and _POD.match(text, end):
        end -= 1
    last = re.split("[.\u3002\uff0e]", text[place:end])[-1]
    if (plain := _ASCII_START.match(last)) and _UNSPACED_CHARACTER.search(last):
        end -= len(last) - plain.end()  # words that touch the address
        last = plain[0]
    name = last.lower().startswith("xn--") or all(map(_is_letter, last))
    return end if name and len(last) > 1 and text[end : end + 1] != "(" else -1


def _is_letter(character: str) -> bool:
    return character.isalpha() or not character.isalnum()


def ips(text: str) -> Spans:
    """Yield IPv4 and IPv6 addresses, but no versions, times, hardware addresses and code."""
    spans = [*_ipv4(text), *_ipv6(text)]
    end = 0
    for span in sorted(spans, key=lambda place: (place[0], -place[1])):
        if span[0] >= end:
            yield span
            end = span[1]


def public_ips(text: str) -> Spans:
    """Yield those addresses that belong to the public internet."""
    for start, end in ips(text):
        address = _address(text[start:end].partition("%")[0])
        if address is not None and address.is_global and _is_assigned(address):
            yield start, end


def _ipv4(text: str) -> Spans:
    if _MAYBE_IPV4.search(text) is None:
        return
    for match in _IPV4.finditer(text):
        if _is_ipv4(text, match.start(), match.end()):
            yield match.span()


def _is_ipv4(text: str, start: int, end: int) -> bool:
    """Return whether four numbers are an address by what is around them in their line."""
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    after = text[end : end + _NEAR].partition("\n")[0]
    if _VERSION_BEFORE.search(before) or _VERSION_AFTER.match(after):
        return False
    numbers = [int(number) for number in text[start:end].split(".")]
    is_large = numbers[0] > _LARGEST_FIRST_OF_VERSION and max(numbers) > _LARGEST_OF_SECTION
    if is_large or len(set(numbers)) == 1:
        return True
    near = _ADDRESS_NEAR.search(before) or _PORT_AFTER.match(after) or _ADDRESS_NEAR.search(after)
    return near is not None


def _ipv6(text: str) -> Spans:
    if _MAYBE_IPV6.search(text) is None:
        return
    for match in _IPV6.finditer(text):
        plain = match[0].partition("%")[0]
        if _address(plain) is not None and _is_ipv6(plain):
            yield match.span()


def _is_ipv6(plain: str) -> bool:
    """Return whether it is no slice, fingerprint or name in a scope, which look alike."""
    groups = [group for group in plain.split(":") if group]
    if not any(map(str.isdigit, plain)):
        return False
    if "::" not in plain:  # 00:11:22:33:44:55:66:77 is the address of a device
        return not all(len(group) == 2 for group in groups)
    return len(groups) > 1 and (len(groups) > 3 or max(map(len, groups)) > 2)


def _is_assigned(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether it is of the public part of IPv6, or an IPv4 address."""
    return address.version == _IPV4_VERSION or address in _PUBLIC_IPV6


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
