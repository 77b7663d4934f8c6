import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

TEXT = "a@b.co 8.8.8.8 10.0.0.1"


def change(text, **options):
    return data.pii.Replace(**options).forward({"text": text})["text"]


def test_addresses_are_replaced():
    assert change(TEXT) == "email@example.com 22.214.171.124 10.0.0.1"
    assert change(TEXT, emails=False, ips=False) == TEXT
    assert change(TEXT, public_ips_only=False, ip_replacement="IP") == "email@example.com IP IP"


def test_replacements_are_used_in_turn_from_the_first_in_each_text():
    operator = data.pii.Replace(email_replacement=["1", "2"])

    assert operator([{"text": "a@b.co c@d.co e@f.co"}, {"text": "a@b.co"}]) == [
        {"text": "1 2 1"},
        {"text": "1"},
    ]
    with pytest.raises(DefinitionError, match="email_replacement is an empty list"):
        data.pii.Replace(email_replacement=[])


def test_numbers_and_keys_are_replaced_on_request():
    text = "+1 555 010 9999, 4111111111111111, GB82WEST12345698765432, AKIA" + "A" * 16

    assert change(text) == text
    assert change(text, phones=True, cards=True, ibans=True, keys=True) == (
        "<PHONE>, <CARD>, <IBAN>, <KEY>"
    )


def test_addresses_are_removed():
    remove_emails, remove_ips = data.pii.RemoveEmails(), data.pii.RemoveIPs(replacement="<IP>")

    assert remove_emails.forward({"text": "x A@b.co y"})["text"] == "x  y"
    assert remove_ips.forward({"text": "v1.2.3.4, host 10.2.3.4"})["text"] == "v1.2.3.4, host <IP>"
    found = data.pii.RemoveIPs(replacement="<IP>", compat=True).forward({"text": "v1.2.3.4"})
    assert found["text"] == "v<IP>"
    assert data.pii.Replace(compat=True).forward({"text": "v10.2.3.4"})["text"] == "v10.2.3.4"
