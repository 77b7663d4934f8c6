import random
import re

import pytest

from dagster_dataops import data
from tests.library.pii.replaced_texts import marked

# The patterns of other tools, by the option ``compat`` of the operators.
EMAILS = data.pii.Replace(compat=True, ips=False, email_replacement="_")
PUBLIC_IPS = data.pii.Replace(compat=True, emails=False, ip_replacement="_")
IPS = data.pii.Replace(compat=True, emails=False, public_ips_only=False, ip_replacement="_")
WIDE_EMAILS = data.pii.RemoveEmails(compat=True, replacement="_")
WIDE_IPS = data.pii.RemoveIPs(compat=True, replacement="_")


@pytest.mark.parametrize(
    ("operator", "text", "addresses"),
    [
        (
            EMAILS,
            "ann.b@x.org, a..b@c.de .d@e.fr f.@g.h John@X.Org me@[1.2.3.4] i@j k@l.m-.",
            ["ann.b@x.org", "b@c.de", "d@e.fr", "John@X.Org", "me@[1.2.3.4]", "k@l.m"],
        ),
        (WIDE_EMAILS, "John+x@a.org. B@c.d.e, f@G.h", ["John+x@a.org", "B@c.d.e"]),
        (PUBLIC_IPS, "8.8.8.8 10.0.0.1 1.2.3.04 310.0.0.2 1.2.3", ["8.8.8.8"]),
        (
            IPS,
            "8.8.8.8 10.0.0.1 1.2.3.04 310.0.0.2 1.2.3",
            ["8.8.8.8", "10.0.0.1", "10.0.0.2"],
        ),
        (
            WIDE_IPS,
            "1.2.3.4 2001:db8:0:0:0:0:0:1 ::1",
            ["1.2.3.4", "2001:db8:0:0:0:0:0:1"],
        ),
    ],
)
def test_addresses_are_found(operator, text, addresses):
    assert operator.forward({"text": text})["text"] == marked(text, addresses)


OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
PLAIN = {
    EMAILS: re.compile(
        rf"\b{ATOM}(?:\.{ATOM})*@(?:(?:{LABEL}\.)+{LABEL}"
        rf"|\[(?:{OCTET}\.){{3}}(?:{OCTET}|[a-z0-9-]*[a-z0-9]:)\])"
    ),
    WIDE_EMAILS: re.compile(r"[A-Za-z0-9.\-+_]+@[a-z0-9.\-+_]+\.[a-z]+"),
}


@pytest.mark.parametrize("operator", PLAIN, ids=["emails", "wide_emails"])
def test_the_same_addresses_are_found_as_by_plain_patterns(operator):
    chance = random.Random(0)
    parts = ["a", "b1", "A", "@", ".", "-", "!", " ", "é", "[1.2.3.4]", "_", "@a.b", ".."]
    for _ in range(20_000):
        text = "".join(chance.choices(parts, k=12))
        assert operator.forward({"text": text})["text"] == PLAIN[operator].sub("_", text), text
