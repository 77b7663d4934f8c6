import random
import re

import pytest

from dagster_dataops.library.pii.internet_addresses import (
    emails,
    ips,
    public_ips,
    wide_emails,
    wide_ips,
)


def found(find, text):
    return [text[start:end] for start, end in find(text)]


def test_email_addresses_are_found():
    text = "ann.b@x.org, a..b@c.de .d@e.fr f.@g.h John@X.Org me@[1.2.3.4] i@j k@l.m-."

    assert found(emails, text) == [
        "ann.b@x.org",
        "b@c.de",
        "d@e.fr",
        "John@X.Org",
        "me@[1.2.3.4]",
        "k@l.m",
    ]
    assert found(wide_emails, "John+x@a.org. B@c.d.e, f@G.h") == ["John+x@a.org", "B@c.d.e"]


def test_ip_addresses_are_found():
    text = "8.8.8.8 10.0.0.1 1.2.3.04 310.0.0.2 1.2.3"

    assert found(public_ips, text) == ["8.8.8.8"]
    assert found(ips, text) == ["8.8.8.8", "10.0.0.1", "10.0.0.2"]
    assert found(wide_ips, "1.2.3.4 2001:db8:0:0:0:0:0:1 ::1") == [
        "1.2.3.4",
        "2001:db8:0:0:0:0:0:1",
    ]


OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
PLAIN = {
    emails: re.compile(
        rf"\b{ATOM}(?:\.{ATOM})*@(?:(?:{LABEL}\.)+{LABEL}"
        rf"|\[(?:{OCTET}\.){{3}}(?:{OCTET}|[a-z0-9-]*[a-z0-9]:)\])"
    ),
    wide_emails: re.compile(r"[A-Za-z0-9.\-+_]+@[a-z0-9.\-+_]+\.[a-z]+"),
}


@pytest.mark.parametrize("find", PLAIN, ids=lambda find: find.__name__)
def test_the_same_addresses_are_found_as_by_plain_patterns(find):
    chance = random.Random(0)
    parts = ["a", "b1", "A", "@", ".", "-", "!", " ", "é", "[1.2.3.4]", "_", "@a.b", ".."]
    for _ in range(20_000):
        text = "".join(chance.choices(parts, k=12))
        assert list(find(text)) == [match.span() for match in PLAIN[find].finditer(text)], text
