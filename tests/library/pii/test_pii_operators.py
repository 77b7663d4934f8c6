"""What all operators of the group have in common."""

import pytest

from dagster_dataops import data

ALL = {"phones": True, "cards": True, "ibans": True, "keys": True, "public_ips_only": False}
OPTIONS = {"Replace": ALL, "Secrets": {"mode": "both"}}
NAMES = [name for name in dir(data.pii) if name != "Entities"]  # which takes the time of a model
HOSTILE = {
    "at": "a@" * 50_000,
    "locals": "a!" * 50_000 + "@",
    "labels": "@" + "a." * 50_000,
    "hyphens": "@a" + "-" * 100_000,
    "domains": "a@[1.1.1.1" * 10_000,
    "octets": "1." * 50_000,
    "hexadecimal": "deadbeef:" * 11_000,
    "digits": "4111 " * 20_000,
    "phones": "+1 555 " * 14_000,
    "accounts": "GB82 " * 20_000,
    "jwt": "eyJ" * 33_000 + ".",
    "begins": "-----BEGIN PRIVATE KEY-----" * 4_000,
    "ends": "-----BEGIN PRIVATE KEY-----" * 2_000 + "-----END PRIVATE KEY-----" * 2_000,
}


def made(name):
    return getattr(data.pii, name)(**OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.cpu_timeout(60)
def test_hostile_texts_take_linear_time(name):
    operator = made(name)
    for text in HOSTILE.values():
        operator.forward({"text": text})
